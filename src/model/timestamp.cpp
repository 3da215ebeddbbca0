#include "model/timestamp.hpp"

#include <charconv>
#include <cmath>

namespace opensandbox::model {
namespace {

using namespace std::chrono;

constexpr double kMillisecondThreshold = 2e10;

std::optional<double> as_number(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc() || stop != end) return std::nullopt;
    return value;
}

/// "2026-01-01T10:00+08:00" -> "2026-01-01T10:00:00+08:00"; anything else unchanged.
std::string with_seconds(std::string_view text) {
    constexpr std::size_t kMinutesEnd = 16;
    std::string full(text);
    bool no_seconds = text.size() >= kMinutesEnd && text[13] == ':' &&
                      (text.size() == kMinutesEnd || text[kMinutesEnd] != ':');
    if (no_seconds) full.insert(kMinutesEnd, ":00");
    return full;
}

}  // namespace

Timestamp latest_timestamp() {
    return Timestamp(sys_days(year(9999) / December / 31)) + hours(24) - microseconds(1);
}

std::optional<Timestamp> timestamp_from_number(double value, std::string& why) {
    if (!std::isfinite(value)) {
        why = "must be a finite number";
        return std::nullopt;
    }
    double seconds_value = std::abs(value) > kMillisecondThreshold ? value / 1000 : value;
    auto limit =
        static_cast<double>(duration_cast<seconds>(latest_timestamp().time_since_epoch()).count());
    if (seconds_value > limit) {
        why = "dates after 9999 are not supported as unix timestamps";
        return std::nullopt;
    }
    auto first =
        static_cast<double>(sys_days(year(1) / January / 1).time_since_epoch().count()) * 86400;
    if (seconds_value < first) {
        why = "dates before 0001 are not supported as unix timestamps";
        return std::nullopt;
    }
    double whole = std::floor(seconds_value);
    double micros = std::round((seconds_value - whole) * 1e6);
    return Timestamp(seconds(static_cast<std::int64_t>(whole))) +
           microseconds(static_cast<std::int64_t>(micros));
}

std::optional<Timestamp> parse_timestamp(std::string_view text, std::string& why) {
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ')
        text.remove_suffix(1);
    if (auto number = as_number(text)) return timestamp_from_number(*number, why);
    if (text.size() == 10) {
        if (auto midnight = parse_rfc3339(std::string(text) + "T00:00:00Z")) return midnight;
    }
    if (auto exact = parse_rfc3339(with_seconds(text))) return exact;
    why = text.size() < 10 ? "input is too short"
                           : "expected a date and time such as 2026-01-31T12:00:00Z";
    return std::nullopt;
}

}  // namespace opensandbox::model
