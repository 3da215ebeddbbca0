#include "runtime/native/spawner/sandboxes/exit_reason.hpp"

#include <catch2/catch.hpp>

#include <csignal>

using namespace opensandbox::runtime;
using Catch::Contains;
using opensandbox::runtime::native::explain_exit;
using opensandbox::runtime::native::ProcessEnd;

namespace {

ResourceLimits limits() {
    ResourceLimits out;
    out.memory_bytes = 64 << 20;
    out.pids = 20;
    return out;
}

Usage after_oom() {
    Usage usage;
    usage.oom_kills = 2;
    usage.memory_peak_bytes = 63 << 20;
    return usage;
}

}  // namespace

TEST_CASE("a sandbox that the kernel ended for want of memory says so, with figures") {
    for (const ProcessEnd& end : {ProcessEnd{-1, SIGKILL}, ProcessEnd{137, 0}}) {
        const Exit exit = explain_exit(end, after_oom(), limits());
        CHECK(exit.reason == "OOM_KILLED");
        CHECK_THAT(exit.message, Contains("2 processes") && Contains("limit is 64 MiB") &&
                                     Contains("63 MiB were in use at most"));
    }
}

TEST_CASE("a kill that memory had no part in is not called one for want of memory") {
    const Exit exit = explain_exit({-1, SIGKILL}, Usage(), limits());
    CHECK(exit.reason == "AGENT_KILLED");
    CHECK_THAT(exit.message, !Contains("memory"));
}

TEST_CASE("a failure of its own after an earlier kill keeps its code and mentions the kill") {
    const Exit exit = explain_exit({3, 0}, after_oom(), limits());
    CHECK(exit.reason.empty());
    CHECK_THAT(exit.message, Contains("for want of memory"));
    CHECK(explain_exit({0, 0}, after_oom(), limits()).message.empty());
}

TEST_CASE("a sandbox that failed where forks were refused says so, with figures") {
    Usage usage;
    usage.pids_refused = 5;
    const Exit exit = explain_exit({254, 0}, usage, limits());
    CHECK(exit.reason == "PIDS_EXHAUSTED");
    CHECK_THAT(exit.message,
               Contains("code 254") && Contains("limit of processes, 20, was hit 5 times"));
    CHECK(explain_exit({0, 0}, usage, limits()).reason.empty());
}

TEST_CASE("ends that say nothing of themselves") {
    CHECK(explain_exit({-1, SIGSEGV}, Usage(), limits()).reason == "AGENT_CRASHED");
    CHECK(explain_exit({-1, 0}, Usage(), limits()).reason == "EXIT_UNKNOWN");
    const Exit plain = explain_exit({7, 0}, Usage(), limits());
    CHECK(plain.reason.empty());
    CHECK(plain.message.empty());
    CHECK(plain.code == 7);
}
