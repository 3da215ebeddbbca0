#include "runtime/native/spawner/egress/guard_record.hpp"

#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::runtime::native;

namespace {

GuardRecord sample() {
    GuardRecord record;
    record.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    record.link = "osb123456000001";
    record.addresses = {"10.77.0.2", "fd00::2"};
    record.egress.wanted = true;
    record.egress.policy = R"({"defaultAction":"deny","egress":[]})";
    record.egress.token = "secret";
    record.egress.environment = {{"OPENSANDBOX_EGRESS_DENY_WEBHOOK", "http://hook.example/"}};
    return record;
}

void check_same(const GuardRecord& a, const GuardRecord& b) {
    CHECK(a.id == b.id);
    CHECK(a.link == b.link);
    CHECK(a.addresses == b.addresses);
    CHECK(a.egress.wanted == b.egress.wanted);
    CHECK(a.egress.policy == b.egress.policy);
    CHECK(a.egress.token == b.egress.token);
    CHECK(a.egress.environment == b.egress.environment);
}

}  // namespace

TEST_CASE("the record of a guarded sandbox comes back as it was") {
    const auto back = parse_guard(format_guard(sample()));
    REQUIRE(back);
    check_same(*back, sample());
}

TEST_CASE("a record that lacks something names it") {
    for (const char* member : {"id", "link", "addresses"}) {
        std::string text = format_guard(sample());
        const auto at = text.find('"' + std::string(member) + '"');
        REQUIRE(at != std::string::npos);
        text.replace(at + 1, 1, "X");
        const auto parsed = parse_guard(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().message().find(member) != std::string::npos);
    }
    CHECK_FALSE(parse_guard("[]"));
    CHECK_FALSE(parse_guard("{"));
}

TEST_CASE("records are this user's alone, and what is none goes") {
    const test_support::ScratchDirectory place;
    const auto directory = place.path / "guards";
    const GuardRecords records(directory);
    CHECK(records.read_all().empty());
    REQUIRE(records.write(sample()));
    struct stat info{};
    REQUIRE(::stat((directory / sample().id).c_str(), &info) == 0);
    CHECK((info.st_mode & 077) == 0);
    std::ofstream(directory / "broken") << "{";
    const auto all = records.read_all();
    REQUIRE(all.size() == 1);
    check_same(all[0], sample());
    CHECK_FALSE(std::filesystem::exists(directory / "broken"));
    records.remove(sample().id);
    CHECK(records.read_all().empty());
}
