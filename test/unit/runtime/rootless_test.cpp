#include "runtime/native/ground/kernel/id_map.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/subordinate_ids.hpp"
#include "runtime/native/ground/layer/discarded_layers.hpp"
#include "runtime/native/records/boot_record.hpp"
#include "runtime/native/spawner/sandboxes/freezer.hpp"
#include "runtime/native/spawner/snapshots/snapshot_files.hpp"
#include "support/scratch_directory.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sched.h>
#include <thread>
#include <unistd.h>

// The C library's own: sanitizers replace clone().
extern "C" int __clone(int (*)(void*), void*, int, void*, ...);

using namespace opensandbox;
using namespace opensandbox::runtime::native;
using opensandbox::runtime::test::succeeded;
using namespace std::chrono_literals;

TEST_CASE("the largest range of a user counts, by name or number", "[runtime][rootless]") {
    const std::string text =
        "root:1:10\n"
        "ada:100000:65536\n"
        "1001:300000:70000\n"
        "adam:500000:99999\n"
        "ada:many:5\n"
        "ada:7\n"
        "\n"
        "ada:200000:10";
    const auto range = subordinate_range(text, "ada", 1001);
    CHECK(range.first == 300'000);
    CHECK(range.count == 70'000);
    CHECK(subordinate_range(text, "ada", 1).first == 100'000);
    CHECK(subordinate_range(text, "eve", 2).count == 0);
    CHECK(subordinate_range("", "ada", 1001).count == 0);
    CHECK(subordinate_range("ada:1:99999999999999999999\n", "ada", 1001).count == 0);
}

TEST_CASE("a user's name comes from passwd, else it is the number", "[runtime][rootless]") {
    const std::string passwd = "root:x:0:0::/root:/bin/sh\nada:x:1001:1001::/home/ada:/bin/sh\n";
    CHECK(user_name(passwd, 1001) == "ada");
    CHECK(user_name(passwd, 0) == "root");
    CHECK(user_name(passwd, 7) == "7");
    CHECK(user_name("", 7) == "7");
}

TEST_CASE("root's namespace has all ids of a sandbox", "[runtime][rootless]") {
    CHECK(ids_of_this_namespace() == 65'536);
}

TEST_CASE("layers are put aside at once and removed later; the rest stays", "[runtime]") {
    const test_support::ScratchDirectory scratch;
    const auto slot = scratch.path / "s00000a";
    std::filesystem::create_directories(slot / "u" / "etc");
    std::filesystem::create_directories(slot / "w");
    std::ofstream(slot / "u" / "etc" / "file") << "text";
    std::ofstream(slot / "output") << "said";
    const DiscardedLayers discarded(scratch.path);
    CHECK_FALSE(discarded.any());
    REQUIRE(succeeded(discarded.put_aside(slot)));
    CHECK(discarded.any());
    CHECK_FALSE(std::filesystem::exists(slot / "u"));
    CHECK(std::filesystem::exists(slot / "output"));
    REQUIRE(succeeded(discarded.put_aside(slot)));
    REQUIRE(succeeded(discarded.remove()));
    CHECK_FALSE(discarded.any());
}

TEST_CASE("slots are put aside whole, also those of later lives with the same name", "[runtime]") {
    const test_support::ScratchDirectory scratch;
    const auto slot = scratch.path / "s00000a";
    const DiscardedLayers discarded(scratch.path);
    for (int life = 0; life < 2; ++life) {
        std::filesystem::create_directories(slot / "u" / "etc");
        std::ofstream(slot / "u" / "etc" / "file") << "text";
        REQUIRE(succeeded(discarded.take(slot)));
        CHECK_FALSE(std::filesystem::exists(slot));
    }
    // One that is gone already is no failure.
    REQUIRE(succeeded(discarded.take(slot)));
    CHECK(discarded.any());
    REQUIRE(succeeded(discarded.remove()));
    CHECK_FALSE(discarded.any());
    REQUIRE(succeeded(discarded.remove()));
    CHECK(std::filesystem::is_empty(scratch.path));
}

TEST_CASE("a restart of the host is seen once", "[runtime]") {
    const test_support::ScratchDirectory scratch;
    std::filesystem::create_directories(scratch.path / "spawner");
    CHECK_FALSE(restarted_since(scratch.path));
    std::ofstream(scratch.path / "spawner" / "boot") << "another-boot";
    CHECK(restarted_since(scratch.path));
    REQUIRE(succeeded(record_boot(scratch.path)));
    CHECK_FALSE(restarted_since(scratch.path));
    CHECK(read_file_or_empty(scratch.path / "spawner" / "boot") == boot_id());
}

namespace {

/// A process with a child of its own, both spinning.
struct Pair {
    Pair() {
        pid = ::fork();
        if (pid != 0) return;
        if (::fork() >= 0) {
            while (true)
                ::usleep(1000);
        }
        ::_exit(1);
    }
    ~Pair() {
        const std::string task = std::to_string(pid);
        const std::string children =
            read_file_or_empty("/proc/" + task + "/task/" + task + "/children");
        if (!children.empty()) ::kill(std::atoi(children.c_str()), SIGKILL);
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;
    pid_t pid = 0;
};

bool within(std::chrono::seconds limit, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

}  // namespace

TEST_CASE("signals stop a whole tree of processes and let it run again", "[runtime][rootless]") {
    const Pair pair;
    const std::string task = std::to_string(pair.pid);
    REQUIRE(within(10s, [&] {
        return !read_file_or_empty("/proc/" + task + "/task/" + task + "/children").empty();
    }));
    const ProcessFreezer freezer(pair.pid);
    CHECK_FALSE(freezer.asked());
    CHECK(within(10s, [&] { return freezer.freeze() && freezer.frozen(); }));
    CHECK(freezer.asked());
    REQUIRE(succeeded(freezer.thaw()));
    CHECK(within(10s, [&] { return !freezer.frozen() && !freezer.asked(); }));
}

TEST_CASE("who waits for a stopped child to which it lent its memory stands still, too",
          "[runtime][rootless]") {
    const pid_t parent = ::fork();
    REQUIRE(parent >= 0);
    if (parent == 0) {
        // As vfork() does, which sanitizers turn into fork().
        std::array<char, 65'536> stack{};
        const auto stop = [](void*) -> int {
            ::kill(::getpid(), SIGSTOP);
            ::syscall(SYS_exit, 0);
            return 0;
        };
        __clone(stop, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
        for (;;)
            ::pause();
    }
    const std::string task = std::to_string(parent);
    const ProcessFreezer freezer(parent);
    const auto state_of = [](const std::string& process) {
        const std::string stat = read_file_or_empty("/proc/" + process + "/stat");
        return stat.at(stat.rfind(')') + 2);
    };
    const auto state = [&] { return state_of(task); };
    CHECK(within(10s, [&] { return state() == 'D'; }));
    // A child that is stopped before it stops itself would do that when it goes on.
    std::string child = read_file_or_empty("/proc/" + task + "/task/" + task + "/children");
    child.resize(child.find(' '));
    CHECK(within(10s, [&] { return state_of(child) == 'T'; }));
    CHECK(within(10s, [&] { return freezer.freeze() && freezer.frozen(); }));
    CHECK(state() == 'D');
    // Then the child ends, and the parent goes on.
    CHECK(succeeded(freezer.thaw()));
    CHECK(within(10s, [&] { return !freezer.frozen(); }));
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
}
