#include "opensandbox/commands.hpp"

#include <array>
#include <charconv>
#include <csignal>

namespace opensandbox::sdk {

namespace {

struct SignalName {
    std::string_view text;
    int number;
};

/// Names as the agent's trace has them ("signal: killed", execd contract 3.2).
constexpr std::array kSignals{
    SignalName{"hangup", SIGHUP},
    SignalName{"interrupt", SIGINT},
    SignalName{"quit", SIGQUIT},
    SignalName{"illegal instruction", SIGILL},
    SignalName{"trace/breakpoint trap", SIGTRAP},
    SignalName{"aborted", SIGABRT},
    SignalName{"bus error", SIGBUS},
    SignalName{"floating point exception", SIGFPE},
    SignalName{"killed", SIGKILL},
    SignalName{"user defined signal 1", SIGUSR1},
    SignalName{"segmentation fault", SIGSEGV},
    SignalName{"user defined signal 2", SIGUSR2},
    SignalName{"broken pipe", SIGPIPE},
    SignalName{"alarm clock", SIGALRM},
    SignalName{"terminated", SIGTERM},
    SignalName{"stack fault", SIGSTKFLT},
    SignalName{"cpu time limit exceeded", SIGXCPU},
    SignalName{"file size limit exceeded", SIGXFSZ},
    SignalName{"bad system call", SIGSYS},
};

constexpr std::string_view kPrefix = "signal: ";
constexpr std::string_view kNumbered = "signal ";

std::optional<int> signal_of(std::string_view trace) {
    if (!trace.starts_with(kPrefix)) return std::nullopt;
    trace.remove_prefix(kPrefix.size());
    for (const auto& signal : kSignals) {
        if (trace.starts_with(signal.text)) return signal.number;
    }
    if (!trace.starts_with(kNumbered)) return std::nullopt;
    trace.remove_prefix(kNumbered.size());
    int number = 0;
    auto [end, failed] = std::from_chars(trace.data(), trace.data() + trace.size(), number);
    if (failed != std::errc() || number < 1 || number > 64) return std::nullopt;
    return number;
}

std::optional<int> integer(std::string_view text) {
    int number = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace

bool apply_terminal_event(const Event& event, Execution& execution) {
    if (event.type == EventType::execution_complete) {
        execution.exit_code = 0;
        execution.duration = std::chrono::milliseconds(event.execution_time);
        return true;
    }
    if (event.type != EventType::error) return false;
    execution.error = event.error;
    execution.exit_code = integer(event.error.value);
    for (const auto& line : event.error.traceback) {
        execution.signal = signal_of(line);
        if (execution.signal) {
            execution.exit_code = 128 + *execution.signal;
            break;
        }
    }
    return true;
}

}  // namespace opensandbox::sdk
