#pragma once

#include "cli/arguments.hpp"
#include "cli/command_table.hpp"
#include "cli/document.hpp"
#include "cli/terminal.hpp"
#include "net/stream.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/sandbox.hpp"
#include "sdk/config_file.hpp"

#include <boost/asio/signal_set.hpp>

#include <functional>
#include <optional>
#include <string>

namespace opensandbox::cli {

/// SIGINT, SIGTERM and SIGHUP of this process. A command that has something to undo handles the
/// first one, else it ends the program; a second one ends it at once.
class Interrupts {
  public:
    /// `end` ends the program with the given exit code.
    Interrupts(asio::any_io_executor executor, std::function<void(int exit_code)> end);

    /// Calls `handler` instead of ending the program, until reset with an empty one.
    void handle(std::function<void()> handler) { handler_ = std::move(handler); }
    /// What a second signal does before it ends the program at once: brings the terminal back.
    void before_forced_end(std::function<void()> undo) { before_forced_end_ = std::move(undo); }
    /// Makes the next signal a first one again, for programs that live on after Ctrl-C.
    void forget() { received_ = 0; }
    /// The signal that came first; 0 when none did.
    [[nodiscard]] int received() const { return received_; }

  private:
    void wait();

    asio::signal_set signals_;
    std::function<void(int)> end_;
    std::function<void()> handler_;
    std::function<void()> before_forced_end_;
    int received_ = 0;
};

/// One call of a command: what was asked, and the means to answer.
class Invocation {
  public:
    Invocation(asio::any_io_executor executor, Arguments& arguments, Format format,
               Terminal& terminal, Interrupts& interrupts, sdk::ConfigFile file)
        : executor_(std::move(executor)),
          arguments_(arguments),
          format_(format),
          terminal_(terminal),
          interrupts_(interrupts),
          file_(std::move(file)) {}

    [[nodiscard]] asio::any_io_executor executor() const { return executor_; }
    [[nodiscard]] Arguments& arguments() { return arguments_; }
    [[nodiscard]] Format format() const { return format_; }
    [[nodiscard]] Terminal& terminal() { return terminal_; }
    [[nodiscard]] Interrupts& interrupts() { return interrupts_; }
    [[nodiscard]] const sdk::ConfigFile& file() const { return file_; }

    /// The connection that options, environment and configuration file name.
    sdk::Result<sdk::Connection> connect();
    /// The sandbox of positional SANDBOX_ID, without asking whether it is ready.
    Awaitable<sdk::Result<sdk::Sandbox>> sandbox();

    // Results, in the format asked for. Each returns the exit code.
    Outcome print_object(const json::object& document);
    /// `rows` in a table, `document` else.
    Outcome print_list(const json::value& document, const json::array& rows,
                       const std::vector<Column>& columns);
    /// {"status":"ok","message":…}, or the sentence.
    Outcome print_done(std::string_view message);
    Outcome print_raw(std::string_view text);

  private:
    asio::any_io_executor executor_;
    Arguments& arguments_;
    Format format_;
    Terminal& terminal_;
    Interrupts& interrupts_;
    sdk::ConfigFile file_;
};

/// The connection options of a command line; the first malformed one is remembered by `arguments`.
sdk::ConnectionOverrides connection_overrides(Arguments& arguments);

}  // namespace opensandbox::cli
