#include "model/hook_schedule.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace opensandbox::model {

namespace {

using namespace std::chrono;

constexpr std::size_t kMaxSchedule = 256;
constexpr seconds kLongest = hours(24 * 366);
/// Every schedule that comes at all comes within this: a 29th of February on a given weekday.
constexpr days kHorizon{366 * 41};

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};

/// What one field may hold.
struct Field {
    std::string_view name;
    int first;
    int last;
    std::span<const std::string_view> names;
};

Error refuse(std::string_view what, std::string_view text, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            std::string(what) + ": '" + std::string(text) + "' " + std::string(rule)};
}

std::optional<int> read_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.front() == '-') return {};
    return value;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    return out;
}

std::optional<int> read_value(const Field& field, std::string_view text) {
    if (text.empty()) return {};
    auto value = read_number(text);
    if (!value) {
        const auto found = std::ranges::find(field.names, lower(text));
        if (found == field.names.end()) return {};
        value = field.first + static_cast<int>(found - field.names.begin());
    }
    if (*value < field.first || *value > field.last) return {};
    return value;
}

/// "*", "5", "1-5", "*/15", "10-40/10".
template <std::size_t N>
Status read_part(const Field& field, std::string_view part, std::bitset<N>& into) {
    const std::string_view whole = part;
    int step = 1;
    const std::size_t slash = part.find('/');
    if (slash != std::string_view::npos) {
        const std::string_view text = part.substr(slash + 1);
        const auto number = text.empty() ? std::nullopt : read_number(text);
        if (!number || *number < 1) return refuse(field.name, whole, "needs a step of 1 or more");
        step = *number;
        part = part.substr(0, slash);
    }
    int first = field.first;
    int last = field.last;
    if (part != "*" && part != "?") {
        const std::size_t dash = part.find('-');
        const auto from = read_value(field, part.substr(0, dash));
        const auto to = dash != std::string_view::npos    ? read_value(field, part.substr(dash + 1))
                        : slash != std::string_view::npos ? std::optional<int>(field.last)
                                                          : from;
        if (!from || !to || *from > *to) {
            return refuse(field.name, whole,
                          "must lie from " + std::to_string(field.first) + " to " +
                              std::to_string(field.last) + ", a range from low to high");
        }
        first = *from;
        last = *to;
    }
    for (int value = first; value <= last; value += std::min(step, last - first + 1))
        into.set(static_cast<std::size_t>(value) % N);
    return {};
}

template <std::size_t N>
Status read_field(const Field& field, std::string_view text, std::bitset<N>& into) {
    while (true) {
        const std::size_t comma = text.find(',');
        if (auto s = read_part(field, text.substr(0, comma), into); !s) return s;
        if (comma == std::string_view::npos) return {};
        text.remove_prefix(comma + 1);
    }
}

/// "1h30m", "90s".
Result<seconds> read_duration(std::string_view text) {
    const std::string_view whole = text;
    seconds total{0};
    while (!text.empty()) {
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        const auto number = digits == 0 ? std::nullopt : read_number(text.substr(0, digits));
        const char unit = digits < text.size() ? text[digits] : ' ';
        const seconds scale = unit == 'h'   ? seconds(3600)
                              : unit == 'm' ? seconds(60)
                              : unit == 's' ? seconds(1)
                                            : seconds(0);
        if (!number || scale.count() == 0 || *number > kLongest / scale) {
            return refuse("@every", whole, "must be hours, minutes and seconds, as in 1h30m");
        }
        total += scale * *number;
        text.remove_prefix(digits + 1);
    }
    if (total < seconds(1) || total > kLongest) {
        return refuse("@every", whole, "must be from one second to a year");
    }
    return total;
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    while (true) {
        const std::size_t begin = text.find_first_not_of(" \t");
        if (begin == std::string_view::npos) return words;
        const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
}

std::string_view spelled_out(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNown{
        {{"@yearly", "0 0 1 1 *"},
         {"@annually", "0 0 1 1 *"},
         {"@monthly", "0 0 1 * *"},
         {"@weekly", "0 0 * * 0"},
         {"@daily", "0 0 * * *"},
         {"@midnight", "0 0 * * *"},
         {"@hourly", "0 * * * *"}}};
    const auto found =
        std::ranges::find_if(kNown, [&](const auto& item) { return item.first == name; });
    return found == kNown.end() ? std::string_view() : found->second;
}

}  // namespace

Result<Schedule> Schedule::parse(std::string_view text) {
    if (text.size() > kMaxSchedule) {
        return Error(ErrorCode::invalid_argument,
                     "schedule: longer than " + std::to_string(kMaxSchedule) + " characters");
    }
    const auto words = words_of(text);
    if (words.empty()) return refuse("schedule", text, "is empty");
    if (words[0] == "@every") {
        if (words.size() != 2) return refuse("schedule", text, "needs one duration");
        auto every = read_duration(words[1]);
        if (!every) return every.error();
        Schedule schedule;
        schedule.every_ = *every;
        return schedule;
    }
    if (words[0].starts_with('@')) {
        const std::string_view fields = spelled_out(words[0]);
        if (fields.empty() || words.size() != 1) {
            return refuse("schedule", text,
                          "is not among @yearly, @monthly, @weekly, @daily, "
                          "@hourly and @every");
        }
        return parse_fields(fields);
    }
    return parse_fields(text);
}

Result<Schedule> Schedule::parse_fields(std::string_view text) {
    const auto words = words_of(text);
    if (words.size() != 5) {
        return refuse("schedule", text, "must have five fields: minute, hour, day, month, weekday");
    }
    Schedule out;
    // Sunday is 0 and 7.
    std::bitset<8> weekdays;
    for (const Status& read : {read_field(Field{"minute", 0, 59, {}}, words[0], out.minutes_),
                               read_field(Field{"hour", 0, 23, {}}, words[1], out.hours_),
                               read_field(Field{"day", 1, 31, {}}, words[2], out.days_),
                               read_field(Field{"month", 1, 12, kMonths}, words[3], out.months_),
                               read_field(Field{"weekday", 0, 7, kWeekdays}, words[4], weekdays)}) {
        if (!read) return read.error();
    }
    for (std::size_t day = 0; day < 8; ++day)
        if (weekdays[day]) out.weekdays_.set(day % 7);
    const auto any = [](std::string_view word) { return word[0] == '*' || word[0] == '?'; };
    out.any_day_ = any(words[2]);
    out.any_weekday_ = any(words[4]);
    const Timestamp start{};
    if (out.next_after(start) == Timestamp::max()) {
        return refuse("schedule", text, "never comes");
    }
    return out;
}

bool Schedule::on_day(sys_days day) const {
    const year_month_day date(day);
    if (!months_[static_cast<unsigned>(date.month())]) return false;
    const bool by_day = days_[static_cast<unsigned>(date.day())];
    const bool by_weekday = weekdays_[weekday(day).c_encoding()];
    if (any_day_ || any_weekday_) return by_day && by_weekday;
    return by_day || by_weekday;
}

Timestamp Schedule::next_after(Timestamp time) const {
    if (every_.count() > 0) return time + every_;
    const auto minute = floor<minutes>(time) + minutes(1);
    const sys_days today = floor<days>(minute);
    for (sys_days day = today; day <= today + kHorizon; day += days(1)) {
        if (!on_day(day)) continue;
        const auto from = day == today ? minute - today : minutes(0);
        for (auto at = floor<minutes>(from); at < days(1); at += minutes(1)) {
            const auto hour = static_cast<std::size_t>(at / hours(1));
            if (hours_[hour] && minutes_[static_cast<std::size_t>(at.count() % 60)]) {
                return day + at;
            }
        }
    }
    return Timestamp::max();
}

}  // namespace opensandbox::model
