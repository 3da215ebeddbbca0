#include "base/clock.hpp"

#include <cctype>
#include <cstdio>
#include <ctime>

namespace opensandbox {
namespace {

/// Reads `count` digits at `at`; -1 when there are fewer.
int digits(std::string_view text, std::size_t at, std::size_t count) {
    if (at + count > text.size()) return -1;
    int value = 0;
    for (std::size_t i = at; i < at + count; ++i) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

std::optional<std::chrono::minutes> parse_offset(std::string_view text) {
    if (text.empty() || text == "Z" || text == "z") return std::chrono::minutes(0);
    if (text[0] != '+' && text[0] != '-') return std::nullopt;
    bool colon = text.size() == 6 && text[3] == ':';
    if (!colon && text.size() != 5) return std::nullopt;
    int hours = digits(text, 1, 2);
    int minutes = digits(text, colon ? 4 : 3, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
    int total = hours * 60 + minutes;
    return std::chrono::minutes(text[0] == '-' ? -total : total);
}

}  // namespace

Timestamp now() {
    return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

std::int64_t to_millis(Timestamp t) {
    return std::chrono::floor<std::chrono::milliseconds>(t).time_since_epoch().count();
}

std::string to_rfc3339(Timestamp t) {
    auto seconds = std::chrono::floor<std::chrono::seconds>(t);
    auto fraction = (t - seconds).count();
    std::time_t raw = seconds.time_since_epoch().count();
    std::tm tm{};
    gmtime_r(&raw, &tm);
    char text[48];
    std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (fraction != 0) {
        length += static_cast<std::size_t>(std::snprintf(text + length, sizeof text - length,
                                                         ".%06d", static_cast<int>(fraction)));
    }
    return std::string(text, length) + "Z";
}

std::optional<Timestamp> parse_rfc3339(std::string_view text) {
    using namespace std::chrono;
    int y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2);
    int h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2);
    if (y < 0 || mo < 0 || d < 0 || h < 0 || mi < 0 || s < 0) return std::nullopt;
    if (text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return std::nullopt;
    if (text[10] != 'T' && text[10] != 't' && text[10] != ' ') return std::nullopt;
    if (h > 23 || mi > 59 || s > 60) return std::nullopt;
    year_month_day date{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
    if (!date.ok()) return std::nullopt;
    std::size_t at = 19;
    std::int64_t micros = 0;
    if (at < text.size() && text[at] == '.') {
        std::int64_t scale = 100000;
        std::size_t start = ++at;
        for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
            micros += (text[at] - '0') * scale;
            scale /= 10;
        }
        if (at == start) return std::nullopt;
    }
    auto offset = parse_offset(text.substr(at));
    if (!offset) return std::nullopt;
    return Timestamp(sys_days(date)) + hours(h) + minutes(mi) + seconds(s) + microseconds(micros) -
           *offset;
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    if (text == "0") return std::chrono::nanoseconds(0);
    double total = 0;
    bool any = false;
    while (!text.empty()) {
        double value = 0, scale = 1;
        bool dot = false, number = false;
        std::size_t i = 0;
        for (; i < text.size(); ++i) {
            if (text[i] == '.' && !dot) {
                dot = true;
            } else if (text[i] >= '0' && text[i] <= '9') {
                number = true;
                if (dot) scale /= 10;
                value = dot ? value + (text[i] - '0') * scale : value * 10 + (text[i] - '0');
            } else {
                break;
            }
        }
        if (!number) return std::nullopt;
        text.remove_prefix(i);
        std::size_t unit = 0;
        while (unit < text.size() && text[unit] != '.' && (text[unit] < '0' || text[unit] > '9'))
            ++unit;
        std::string_view name = text.substr(0, unit);
        double factor = name == "ns"   ? 1
                        : name == "us" ? 1e3
                        : name == "ms" ? 1e6
                        : name == "s"  ? 1e9
                        : name == "m"  ? 60e9
                        : name == "h"  ? 3600e9
                                       : 0;
        if (factor == 0) return std::nullopt;
        total += value * factor;
        if (total > 9e18) return std::nullopt;
        any = true;
        text.remove_prefix(unit);
    }
    if (!any) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

}  // namespace opensandbox
