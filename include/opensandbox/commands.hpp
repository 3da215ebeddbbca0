#pragma once

#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::sdk {

class Transport;
struct Route;

/// A command to run. Exactly one of `command` and `argv` is set.
struct CommandRequest {
    CommandRequest() = default;
    explicit CommandRequest(std::string shell_text) : command(std::move(shell_text)) {}
    explicit CommandRequest(std::vector<std::string> arguments) : argv(std::move(arguments)) {}

    std::string command;                   ///< text for the sandbox's shell
    std::vector<std::string> argv;         ///< literal arguments, no shell
    std::string working_directory;         ///< must exist; empty: the agent's own
    std::chrono::milliseconds timeout{0};  ///< killed after it; 0: no limit
    std::optional<std::uint32_t> uid;
    std::optional<std::uint32_t> gid;  ///< only together with uid
    std::vector<std::pair<std::string, std::string>> environment;
};

enum class EventType : std::uint8_t {
    init,                ///< `text` is the execution's id; always first
    standard_output,     ///< `text`, with its line end when there was one
    standard_error,      ///< likewise
    status,              ///< `text` (code contexts only)
    execution_count,     ///< `execution_count` (code contexts only)
    result,              ///< `results` by media type (code contexts only)
    error,               ///< `error`; ends a command
    execution_complete,  ///< success; ends a command
    ping,                ///< keep-alive
    other,               ///< a type that this version does not know
};

/// Why an execution failed. For a command `name` is CommandExecError and `value` its exit code.
struct ExecutionError {
    std::string name;
    std::string value;
    std::vector<std::string> traceback;
};

/// One event of a running execution.
struct Event {
    EventType type = EventType::other;
    std::string text;
    std::int64_t timestamp = 0;       ///< milliseconds since the epoch
    std::int64_t execution_time = 0;  ///< milliseconds
    std::int64_t execution_count = 0;
    std::vector<std::pair<std::string, std::string>> results;
    ExecutionError error;
};

/// The events of one execution as they come. Movable; dropping it closes the connection (the
/// command itself runs on, see Commands::interrupt).
class EventStream {
  public:
    EventStream(EventStream&&) noexcept;
    EventStream& operator=(EventStream&&) noexcept;
    ~EventStream();

    /// The next event; empty after the last. `bad_gateway` when the stream broke off, `protocol`
    /// when it is not an event stream.
    boost::asio::awaitable<Result<std::optional<Event>>> next();
    /// Closes the connection now; a next() in flight ends with `cancelled`.
    void abort();

    /// For the library's own use.
    struct State;
    explicit EventStream(std::unique_ptr<State> state);

  private:
    std::unique_ptr<State> state_;
};

/// What became of a command.
struct Execution {
    std::string id;
    /// As the command returned it; 128 + n when signal n ended it. Empty when it never started or
    /// the stream ended without saying.
    std::optional<int> exit_code;
    std::optional<int> signal;
    std::optional<ExecutionError> error;
    std::string output;        ///< standard output, unless a handler took it
    std::string error_output;  ///< standard error, likewise
    bool truncated = false;    ///< more came than `max_output` bytes of either
    std::chrono::milliseconds duration{0};
};

/// Called as output comes; when set, that stream is not collected.
struct OutputHandlers {
    std::function<void(std::string_view)> on_output;
    std::function<void(std::string_view)> on_error_output;
    std::function<void(const Event&)> on_event;  ///< every event, first
    std::size_t max_output = 16 * 1024 * 1024;   ///< collected bytes of each stream
};

struct CommandStatus {
    std::string id;
    std::optional<std::string> content;  ///< the command's text
    bool running = false;
    std::optional<int> exit_code;
    std::optional<std::string> error;
    std::optional<std::chrono::sys_time<std::chrono::microseconds>> started_at;
    std::optional<std::chrono::sys_time<std::chrono::microseconds>> finished_at;
};

/// Which commands are listed.
struct CommandFilter {
    std::optional<bool> running;  ///< empty: those that run and those that ended
    unsigned limit = 50;          ///< 1 to 100
    std::string cursor;           ///< CommandPage::next_cursor of the page before
};

/// One command of a listing.
struct CommandSummary {
    std::string id;
    bool running = false;
    bool background = false;
    std::optional<std::chrono::sys_time<std::chrono::microseconds>> started_at;
    std::optional<std::chrono::sys_time<std::chrono::microseconds>> finished_at;
    std::optional<int> exit_code;
    std::optional<std::string> error;
};

struct CommandPage {
    std::vector<CommandSummary> items;
    std::optional<std::string> next_cursor;  ///< empty: there are no more
};

/// A piece of a background command's output, both streams as they came.
struct CommandLogs {
    std::string content;
    std::optional<std::int64_t> cursor;  ///< ask for more from here
};

/// The commands of one sandbox. Cheap to copy.
class Commands {
  public:
    /// Starts a command and hands out its events.
    boost::asio::awaitable<Result<EventStream>> stream(CommandRequest request) const;
    /// Runs a command to its end. That it failed is no Error: see Execution::exit_code.
    boost::asio::awaitable<Result<Execution>> run(CommandRequest request,
                                                  OutputHandlers handlers = {}) const;
    /// Starts a command in the background; returns its id.
    boost::asio::awaitable<Result<std::string>> start(CommandRequest request) const;
    boost::asio::awaitable<Result<CommandStatus>> status(std::string id) const;
    /// The latest first. Agents of older versions do not know it: `unsupported`.
    boost::asio::awaitable<Result<CommandPage>> list(CommandFilter filter = {}) const;
    /// Output of a background command from `cursor` on (0: from the beginning).
    boost::asio::awaitable<Result<CommandLogs>> logs(std::string id, std::int64_t cursor = 0) const;
    /// SIGTERM, SIGKILL three seconds later; returns when the command is gone.
    boost::asio::awaitable<Status> interrupt(std::string id) const;

  private:
    friend class Sandbox;
    Commands(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent);
    std::shared_ptr<Transport> transport_;
    std::shared_ptr<const Route> agent_;
};

/// Exit code, signal and error of an execution whose terminal event this is; false when it is no
/// terminal event. Signals are recognised from the trace ("signal: killed").
bool apply_terminal_event(const Event& event, Execution& execution);

}  // namespace opensandbox::sdk
