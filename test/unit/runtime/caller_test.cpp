#include "runtime/native/ground/confinement/caller.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace opensandbox::runtime::native;

namespace {

const std::string status_text =
    "Name:\ttar\\nUid:\t0\nUmask:\t0022\nTgid:\t17\nPid:\t19\n"
    "Uid:\t1\t2\t3\t1000\nGid:\t4\t5\t6\t1001\nGroups:\t7 8 \n"
    "CapPrm:\t00000000ffffffff\nCapEff:\t00000000800000fb\n";

}  // namespace

TEST_CASE("the rights to files of a process are read from its status", "[runtime][set-id]") {
    const auto found = parse_file_credentials(status_text);
    REQUIRE(found.has_value());
    CHECK(found->process == 17);
    CHECK(found->uid == 1000);
    CHECK(found->gid == 1001);
    CHECK(found->groups == std::vector<gid_t>{7, 8});
    CHECK(found->capabilities == 0x8000'00fb);
}

TEST_CASE("a status that is cut anywhere is refused", "[runtime][set-id]") {
    for (std::size_t size = 0; size < status_text.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(parse_file_credentials(status_text.substr(0, size)).has_value());
    }
}

TEST_CASE("numbers in a status that are none are refused", "[runtime][set-id]") {
    for (const char* from : {"17", "1000", "1001", "7 8", "00000000800000fb"}) {
        std::string text = status_text;
        text.replace(text.find(from), 1, "x");
        CAPTURE(text);
        CHECK_FALSE(parse_file_credentials(text).has_value());
    }
}

TEST_CASE("this process is found with its own rights", "[runtime][set-id]") {
    auto self = Caller::of(::getpid());
    REQUIRE(self.has_value());
    CHECK(self->process() == ::getpid());
    CHECK(self->credentials().uid == ::geteuid());
    REQUIRE(self->look().has_value());
    const std::string text = "in memory";
    const auto read = self->read_text(reinterpret_cast<std::uintptr_t>(text.c_str()), 100);
    REQUIRE(read.has_value());
    CHECK(*read == text);
    CHECK_FALSE(self->read_text(8, 100).has_value());
    CHECK_FALSE(self->read_bytes(~std::uint64_t{0} - 4, 100).has_value());
    CHECK(self->resolve(AT_FDCWD, "/etc", true).has_value());
    CHECK_FALSE(self->resolve(AT_FDCWD, "/proc/self/cwd/x", true).has_value());
    CHECK_FALSE(self->resolve(AT_FDCWD, "", true).has_value());
    CHECK_FALSE(Caller::of(0).has_value());
}
