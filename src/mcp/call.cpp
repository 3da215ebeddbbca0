#include "mcp/call.hpp"

namespace opensandbox::mcp {

namespace {

constexpr std::chrono::milliseconds kReportInterval{100};

}  // namespace

std::string Call::text(std::string_view name) const {
    return optional_text(name).value_or(std::string());
}

std::optional<std::string> Call::optional_text(std::string_view name) const {
    const json::value* found = json::find(arguments_, name);
    if (found == nullptr || !found->is_string()) return {};
    return std::string(found->get_string());
}

std::int64_t Call::integer(std::string_view name, std::int64_t standard) const {
    auto found = json::get_integer(arguments_, name);
    return found ? found->value_or(standard) : standard;
}

double Call::number(std::string_view name, double standard) const {
    auto found = json::get_number(arguments_, name);
    return found ? found->value_or(standard) : standard;
}

bool Call::flag(std::string_view name) const {
    auto found = json::get_bool(arguments_, name);
    return found && found->value_or(false);
}

std::vector<std::string> Call::texts(std::string_view name) const {
    auto found = json::get_strings(arguments_, name);
    if (!found || !found->has_value()) return {};
    return std::move(**found);
}

std::vector<std::pair<std::string, std::string>> Call::map(std::string_view name) const {
    auto found = json::get_string_map(arguments_, name);
    if (!found || !found->has_value()) return {};
    return std::move(**found);
}

void Call::progress(double done, std::optional<double> total, std::string text) {
    if (!report_ || cancelled_ || done <= last_done_) return;
    const auto now = std::chrono::steady_clock::now();
    const bool last = total && done >= *total;
    if (!last && now - last_report_ < kReportInterval) return;
    last_report_ = now;
    last_done_ = done;
    report_(done, total, std::move(text));
}

void Call::on_cancel(std::function<void()> action) {
    on_cancel_ = std::move(action);
    if (cancelled_ && on_cancel_) on_cancel_();
}

bool Call::cancel() {
    if (cancelled_) return true;
    cancelled_ = true;
    if (!on_cancel_) return false;
    on_cancel_();
    return true;
}

sdk::Error cancelled_error() {
    return {sdk::ErrorCode::cancelled, "the call was cancelled"};
}

}  // namespace opensandbox::mcp
