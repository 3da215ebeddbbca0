#include "base/program_answer.hpp"

#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

using namespace opensandbox;

namespace {

/// Runs a script of a shell.
ProgramCall script(std::string text, std::string input = {}) {
    ProgramCall call;
    call.program = "sh";
    call.arguments = {"-c", std::move(text), "script", "word"};
    call.input = std::move(input);
    return call;
}

}  // namespace

TEST_CASE("a program is given words and input, and gives its answer") {
    auto answer = ask_program(script(R"(read line; printf '%s, %s' "$1" "$line")", "a line\n"));
    REQUIRE(answer);
    CHECK(*answer == "word, a line");
    CHECK(ask_program(script("cat"))->empty());
}

TEST_CASE("a program fails with its exit code and without its words") {
    auto failed = ask_program(script("echo secret; echo secret >&2; exit 3"));
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code() == ErrorCode::io);
    CHECK(failed.error().message() == "sh: exit code 3");
    CHECK(ask_program(script("kill -9 $$")).error().message() == "sh: killed by signal 9");
}

TEST_CASE("a program that hangs is killed with all it started") {
    test_support::ScratchDirectory scratch;
    const std::string pid_file = scratch.path / "pid";
    ProgramCall call = script("sleep 1000 & echo $! > " + pid_file + "; wait");
    call.limit = std::chrono::milliseconds(300);
    auto late = ask_program(call);
    REQUIRE_FALSE(late);
    CHECK(late.error().code() == ErrorCode::timeout);
    pid_t left = 0;
    std::ifstream(pid_file) >> left;
    REQUIRE(left > 0);
    // Whoever adopts it may be slow to collect it.
    std::string state;
    std::ifstream stat("/proc/" + std::to_string(left) + "/stat");
    for (int field = 0; field < 3; ++field)
        stat >> state;
    CHECK((!stat || state == "Z" || state == "X"));
}

TEST_CASE("a program is found on PATH, by its path, or not at all") {
    test_support::ScratchDirectory scratch;
    const std::string path = scratch.path / "program";
    std::ofstream(path) << "#!/bin/sh\necho found";
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    ProgramCall call;
    call.program = path;
    CHECK(ask_program(call).value() == "found\n");
    call.program = "opensandbox-no-such-program";
    CHECK(ask_program(call).error().code() == ErrorCode::not_found);
}

TEST_CASE("variables are added to a program's environment or replace what is there") {
    ::setenv("OPENSANDBOX_TEST_KEPT", "kept", 1);
    ::setenv("OPENSANDBOX_TEST_REPLACED", "before", 1);
    ProgramCall call = script("env | grep ^OPENSANDBOX_TEST_ | sort");
    call.environment = {{"OPENSANDBOX_TEST_REPLACED", "after"}, {"OPENSANDBOX_TEST_ADDED", "a=b"}};
    auto answer = ask_program(call);
    ::unsetenv("OPENSANDBOX_TEST_KEPT");
    ::unsetenv("OPENSANDBOX_TEST_REPLACED");
    REQUIRE(answer);
    CHECK(*answer ==
          "OPENSANDBOX_TEST_ADDED=a=b\nOPENSANDBOX_TEST_KEPT=kept\n"
          "OPENSANDBOX_TEST_REPLACED=after\n");
}

TEST_CASE("of an answer that never ends 64 KiB are taken") {
    auto answer = ask_program(script("head -c 100000 /dev/zero"));
    REQUIRE(answer);
    CHECK(answer->size() == 64 * 1024);
}
