#include "runtime/native/spawner/sandboxes/exit_reason.hpp"

#include <csignal>

namespace opensandbox::runtime::native {

namespace {

constexpr int kSignalBase = 128;

std::string mebibytes(std::uint64_t bytes) {
    return std::to_string(bytes >> 20) + " MiB";
}

std::string memory_text(const Usage& usage, const ResourceLimits& limits) {
    std::string text = usage.oom_kills == 1
                           ? "the kernel ended a process"
                           : "the kernel ended " + std::to_string(usage.oom_kills) + " processes";
    text += " for want of memory";
    if (limits.memory_bytes > 0) text += ": the limit is " + mebibytes(limits.memory_bytes);
    if (usage.memory_peak_bytes) {
        text += (limits.memory_bytes > 0 ? ", " : ": ") + mebibytes(*usage.memory_peak_bytes) +
                " were in use at most";
    }
    return text;
}

std::string pids_text(const Usage& usage, const ResourceLimits& limits) {
    std::string text = "the limit of processes";
    if (limits.pids > 0) text += ", " + std::to_string(limits.pids) + ",";
    return text + " was hit " + std::to_string(usage.pids_refused) +
           (usage.pids_refused == 1 ? " time" : " times");
}

}  // namespace

Exit explain_exit(const ProcessEnd& end, const Usage& usage, const ResourceLimits& limits) {
    Exit exit;
    exit.code = end.code;
    exit.signal = end.signal;
    const bool killed = end.signal == SIGKILL || end.code == kSignalBase + SIGKILL;
    const bool failed = end.code != 0 || end.signal != 0;
    if (killed && usage.oom_kills > 0) {
        exit.reason = "OOM_KILLED";
        exit.message = memory_text(usage, limits);
    } else if (end.signal == SIGKILL) {
        exit.reason = "AGENT_KILLED";
        exit.message = "the agent was killed from outside";
    } else if (end.signal != 0) {
        exit.reason = "AGENT_CRASHED";
        exit.message = "the agent died of signal " + std::to_string(end.signal);
    } else if (end.code < 0) {
        exit.reason = "EXIT_UNKNOWN";
        exit.message = "ended while nobody was watching";
    } else if (failed && usage.pids_refused > 0) {
        exit.reason = "PIDS_EXHAUSTED";
        exit.message =
            "exited with code " + std::to_string(end.code) + " after " + pids_text(usage, limits);
    }
    if (failed && usage.pids_refused > 0 && exit.reason != "PIDS_EXHAUSTED") {
        exit.message += "; " + pids_text(usage, limits);
    }
    if (failed && usage.oom_kills > 0 && exit.reason != "OOM_KILLED") {
        if (!exit.message.empty()) exit.message += "; ";
        exit.message += memory_text(usage, limits);
    }
    return exit;
}

void explain_gvisor(Exit& exit, std::string_view said) {
    if (said.empty()) return;
    if (exit.reason != "OOM_KILLED" && exit.reason != "PIDS_EXHAUSTED")
        exit.reason = "GVISOR_ENDED";
    if (!exit.message.empty()) exit.message += "; ";
    exit.message += said;
}

}  // namespace opensandbox::runtime::native
