#pragma once

#include "opensandbox/commands.hpp"
#include "opensandbox/error.hpp"

#include <string>
#include <utility>
#include <variant>

namespace opensandbox::cli {

/// Exit codes of the command line itself; a remote command's own code passes through unchanged.
inline constexpr int kSuccess = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

/// Why a command of this program failed.
class Failure {
  public:
    /// The request could not be carried out: exit code 1.
    // NOLINTNEXTLINE(google-explicit-constructor)
    Failure(sdk::Error error) : error_(std::move(error)) {}
    /// The command line itself is wrong: exit code 2. The message names the option or value and
    /// the accepted forms.
    static Failure usage(std::string message);

    [[nodiscard]] int exit_code() const { return usage_ ? kWrongUsage : kFailed; }
    [[nodiscard]] bool is_usage() const { return usage_; }
    [[nodiscard]] const sdk::Error& error() const { return error_; }
    /// One line for people, with a hint where there is one.
    [[nodiscard]] std::string describe() const;

  private:
    bool usage_ = false;
    sdk::Error error_;
};

/// What a command ends with: an exit code or a Failure.
class Outcome {
  public:
    // NOLINTBEGIN(google-explicit-constructor): handlers return any of the three.
    Outcome(int exit_code) : state_(exit_code) {}
    Outcome(Failure failure) : state_(std::move(failure)) {}
    Outcome(sdk::Error error) : state_(Failure(std::move(error))) {}
    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] const Failure* failure() const { return std::get_if<Failure>(&state_); }
    [[nodiscard]] int exit_code() const {
        return failure() ? failure()->exit_code() : std::get<int>(state_);
    }

  private:
    std::variant<int, Failure> state_;
};

/// The code to exit with after a remote execution: its own, 128 + n after signal n; when it never
/// started 127 (not found), 126 (not executable) or 1.
int exit_code_of(const sdk::Execution& execution);

/// What to tell about an execution that has no exit code of its own; empty when it has one.
std::string start_failure_of(const sdk::Execution& execution);

}  // namespace opensandbox::cli
