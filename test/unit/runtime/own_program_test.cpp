#include "runtime/native/ground/kernel/own_program.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/slot_process.hpp"
#include "runtime/native/records/protocol.hpp"
#include "unit/runtime/checks_in_child.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace opensandbox;
using opensandbox::runtime::test::in_child;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

ino_t inode_of(int fd) {
    struct stat info{};
    return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

/// Where the stack of a process begins, as text.
std::string stack_of(const std::string& process) {
    const std::string stat = read_file_or_empty(process + "/stat");
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string text;
    for (int field = 3; field <= 28; ++field)
        fields >> text;
    return text;
}

/// A slot's process in the namespaces of this one.
struct OwnSlot {
    pid_t pid = 0;
    UniqueFd control;

    explicit OwnSlot(int program) {
        auto pair = message_pair().value();
        pid = ::fork();
        if (pid == 0) {
            pair.first.reset();
            run_slot(program, std::move(pair.second));
        }
        control = std::move(pair.first);
    }
    /// What it says next.
    Message answer() const { return decode(receive_message(control.get()).value().bytes).value(); }
    int code() const {
        int status = 0;
        ::waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
};

}  // namespace

TEST_CASE("a new program gets the descriptors that are named, in their order, and no others",
          "[runtime][own_program]") {
    auto program = open_own_program();
    REQUIRE(succeeded(program));
    const int failed = in_child([&] {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) < 0) return 1;
        const ino_t executable = inode_of(program->get());
        const int high = ::fcntl(program->get(), F_DUPFD_CLOEXEC, 64);
        const ino_t pipe = inode_of(ends[0]);
        const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        const ino_t nothing = inode_of(null);
        // Each where the other belongs, out of the way first.
        const int other = ::fcntl(ends[0], F_DUPFD_CLOEXEC, 65);
        if (::dup2(::fcntl(null, F_DUPFD_CLOEXEC, 65), 4) < 0 || ::dup2(other, 3) < 0) return 1;
        auto own = keep_for_new_program(std::array{4, 3}, high);
        if (!own || *own != 5) return 2;
        if (inode_of(3) != nothing || (::fcntl(3, F_GETFD) & FD_CLOEXEC) != 0) return 3;
        if (inode_of(4) != pipe || (::fcntl(4, F_GETFD) & FD_CLOEXEC) != 0) return 4;
        if (inode_of(5) != executable || (::fcntl(5, F_GETFD) & FD_CLOEXEC) == 0) return 5;
        for (int fd = 6; fd < 256; ++fd)
            if (::fcntl(fd, F_GETFD) >= 0) return 6;
        return 0;
    });
    CHECK(failed == 0);
}

TEST_CASE("a slot's process starts this executable anew", "[runtime][own_program]") {
    auto program = open_own_program();
    REQUIRE(succeeded(program));
    OwnSlot slot(program->get());
    const std::string process = "/proc/" + std::to_string(slot.pid);
    // Forked, it has its parent's.
    CHECK(stack_of(process) == stack_of("/proc/self"));
    REQUIRE(succeeded(send_message(slot.control.get(), encode(SlotTerms{}))));
    for (int round = 0; round < 500 && stack_of(process) == stack_of("/proc/self"); ++round)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(stack_of(process) != stack_of("/proc/self"));
    CHECK(std::filesystem::equivalent(process + "/exe", "/proc/self/exe"));
    slot.control.reset();
    CHECK(slot.code() == 0);
}

TEST_CASE("a slot that is told something else first says so and ends", "[runtime][own_program]") {
    auto program = open_own_program();
    REQUIRE(succeeded(program));
    const OwnSlot slot(program->get());
    REQUIRE(succeeded(send_message(slot.control.get(), encode(BlankReady{}))));
    const Message message = slot.answer();
    REQUIRE(std::holds_alternative<FailedReply>(message));
    CHECK(std::get<FailedReply>(message).error.message() == "slot: unexpected message");
    CHECK(slot.code() == 1);
}

TEST_CASE("a slot whose program cannot be started says so and ends", "[runtime][own_program]") {
    const UniqueFd none(::open("/dev/null", O_PATH | O_CLOEXEC));
    const OwnSlot slot(none.get());
    REQUIRE(succeeded(send_message(slot.control.get(), encode(SlotTerms{}))));
    const Message message = slot.answer();
    REQUIRE(std::holds_alternative<FailedReply>(message));
    const Error& error = std::get<FailedReply>(message).error;
    CHECK(error.code() == ErrorCode::permission_denied);
    CHECK(error.message().starts_with("start this executable anew"));
    CHECK(slot.code() == 1);
}

TEST_CASE("a slot whose maker is gone before it said anything ends", "[runtime][own_program]") {
    auto program = open_own_program();
    REQUIRE(succeeded(program));
    OwnSlot slot(program->get());
    slot.control.reset();
    CHECK(slot.code() == 0);
}
