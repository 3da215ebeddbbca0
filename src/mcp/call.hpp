#pragma once

#include "json/document.hpp"
#include "net/stream.hpp"
#include "opensandbox/error.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace opensandbox::mcp {

class Workspace;

/// One call of a tool while it is being carried out. Its arguments have passed the tool's schema.
class Call {
  public:
    using Report = std::function<void(double done, std::optional<double> total, std::string text)>;

    /// `report` is empty when the client did not ask for progress.
    Call(json::object arguments, Workspace& workspace, Report report)
        : arguments_(std::move(arguments)), workspace_(workspace), report_(std::move(report)) {}

    [[nodiscard]] const json::object& arguments() const { return arguments_; }
    [[nodiscard]] Workspace& workspace() const { return workspace_; }

    // Arguments by name. The ones that may be missing are empty then.
    [[nodiscard]] std::string text(std::string_view name) const;
    [[nodiscard]] std::optional<std::string> optional_text(std::string_view name) const;
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t standard) const;
    [[nodiscard]] double number(std::string_view name, double standard) const;
    [[nodiscard]] bool flag(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> map(std::string_view name) const;

    /// Tells the client how far the work is. Numbers must grow; what comes in quick succession is
    /// passed over.
    void progress(double done, std::optional<double> total, std::string text);
    [[nodiscard]] bool wants_progress() const { return static_cast<bool>(report_); }

    [[nodiscard]] bool cancelled() const { return cancelled_; }
    /// From now on `action` is what a cancellation does, instead of ending the coroutine where it
    /// waits; an empty one takes that back. Called at once when it was cancelled before.
    void on_cancel(std::function<void()> action);
    /// Whether an action took the cancellation over.
    bool cancel();

  private:
    json::object arguments_;
    Workspace& workspace_;
    Report report_;
    std::function<void()> on_cancel_;
    std::chrono::steady_clock::time_point last_report_{};
    double last_done_ = -1;
    bool cancelled_ = false;
};

/// What a call that was given up ends with.
sdk::Error cancelled_error();

}  // namespace opensandbox::mcp
