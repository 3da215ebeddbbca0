#pragma once

#include "cli/arguments.hpp"
#include "cli/command_table.hpp"
#include "cli/document.hpp"
#include "cli/interrupts.hpp"
#include "cli/terminal.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/sandbox.hpp"
#include "sdk/config_file.hpp"

#include <optional>
#include <string>

namespace opensandbox::cli {

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
