#include "cli/duration.hpp"

#include <array>
#include <charconv>

namespace opensandbox::cli {

namespace {

using std::chrono::milliseconds;

struct Unit {
    std::string_view name;
    std::int64_t millis;
};

/// From long to short, the order in which they may be combined.
constexpr std::array kUnits{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                            Unit{"s", 1000}, Unit{"ms", 1}};
constexpr std::int64_t kLongest = 3650LL * 86'400'000;

}  // namespace

std::optional<milliseconds> parse_duration_text(std::string_view text) {
    std::int64_t total = 0;
    std::size_t next_unit = 0;
    bool bare = false;
    if (text.empty()) return std::nullopt;
    while (!text.empty()) {
        std::int64_t number = 0;
        auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (failed != std::errc() || text[0] == '-') return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        std::string_view name = text.substr(0, text.find_first_of("0123456789"));
        text.remove_prefix(name.size());
        if (name.empty()) {
            if (bare || next_unit != 0) return std::nullopt;
            bare = true;
            name = "s";
        }
        std::size_t unit = next_unit;
        while (unit < kUnits.size() && kUnits[unit].name != name)
            ++unit;
        if (unit == kUnits.size() || number > kLongest / kUnits[unit].millis) return std::nullopt;
        total += number * kUnits[unit].millis;
        next_unit = unit + 1;
        if (total > kLongest) return std::nullopt;
    }
    if (total <= 0) return std::nullopt;
    return milliseconds(total);
}

std::string to_clock_text(std::chrono::seconds duration) {
    const auto seconds = duration.count();
    const auto days = seconds / 86'400;
    auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    std::string text;
    if (days > 0) text = std::to_string(days) + (days == 1 ? " day, " : " days, ");
    return text + std::to_string(seconds % 86'400 / 3600) + ":" + two(seconds % 3600 / 60) + ":" +
           two(seconds % 60);
}

}  // namespace opensandbox::cli
