#include "agent/files/range.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace opensandbox::agent {
namespace {

constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

/// Only digits, and no more than fit.
std::optional<std::uint64_t> to_number(std::string_view text) {
    std::uint64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

std::optional<int> two_digits(std::string_view text) {
    auto number = text.size() == 2 ? to_number(text) : std::nullopt;
    if (!number) return std::nullopt;
    return static_cast<int>(*number);
}

void append_padded(std::string& out, int number, std::size_t width) {
    std::string digits = std::to_string(number);
    if (digits.size() < width) out.append(width - digits.size(), '0');
    out += digits;
}

}  // namespace

ByteRange parse_range(std::string_view header, std::uint64_t size) {
    ByteRange range;
    header = trim(header);
    if (header.empty()) return range;
    range.kind = ByteRange::Kind::malformed;
    constexpr std::string_view kUnit = "bytes=";
    if (!header.starts_with(kUnit)) return range;
    std::string_view first = header.substr(kUnit.size());
    first = trim(first.substr(0, first.find(',')));
    std::size_t dash = first.find('-');
    if (dash == std::string_view::npos) return range;
    std::string_view from_text = trim(first.substr(0, dash));
    std::string_view to_text = trim(first.substr(dash + 1));
    auto from = to_number(from_text);
    auto to = to_number(to_text);
    if ((!from && !from_text.empty()) || (!to && !to_text.empty()) || (!from && !to)) return range;
    if (!from) {
        std::uint64_t length = std::min(*to, size);
        range.kind = length == 0 ? ByteRange::Kind::unsatisfiable : ByteRange::Kind::part;
        range.first = size - length;
        range.length = length;
        return range;
    }
    if (to && *to < *from) return range;
    if (*from >= size) {
        range.kind = ByteRange::Kind::unsatisfiable;
        return range;
    }
    std::uint64_t last = to ? std::min(*to, size - 1) : size - 1;
    range.kind = ByteRange::Kind::part;
    range.first = *from;
    range.length = last - *from + 1;
    return range;
}

std::string to_http_date(std::int64_t seconds) {
    auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::string out(kDays[static_cast<std::size_t>(parts.tm_wday)]);
    out += ", ";
    append_padded(out, parts.tm_mday, 2);
    out += ' ';
    out += kMonths[static_cast<std::size_t>(parts.tm_mon)];
    out += ' ';
    append_padded(out, parts.tm_year + 1900, 4);
    out += ' ';
    append_padded(out, parts.tm_hour, 2);
    out += ':';
    append_padded(out, parts.tm_min, 2);
    out += ':';
    append_padded(out, parts.tm_sec, 2);
    return out + " GMT";
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
    // "Sun, 06 Nov 1994 08:49:37 GMT": every field has its place.
    if (text.size() != 29 || text.substr(25) != " GMT" || text.substr(3, 2) != ", ") {
        return std::nullopt;
    }
    auto day = two_digits(text.substr(5, 2));
    auto month = std::ranges::find(kMonths, text.substr(8, 3));
    auto year = to_number(text.substr(12, 4));
    auto hour = two_digits(text.substr(17, 2));
    auto minute = two_digits(text.substr(20, 2));
    auto second = two_digits(text.substr(23, 2));
    if (!day || month == kMonths.end() || !year || !hour || !minute || !second) return std::nullopt;
    std::tm parts{};
    parts.tm_mday = *day;
    parts.tm_mon = static_cast<int>(month - kMonths.begin());
    parts.tm_year = static_cast<int>(*year) - 1900;
    parts.tm_hour = *hour;
    parts.tm_min = *minute;
    parts.tm_sec = *second;
    return static_cast<std::int64_t>(::timegm(&parts));
}

void LineWindow::begin_line(std::string& out) {
    in_line_ = true;
    if (skip_ == 0 && any_line_) out += '\n';
    if (skip_ == 0) any_line_ = true;
}

void LineWindow::feed(std::string_view bytes, std::string& out) {
    while (!bytes.empty() && !done()) {
        if (!in_line_) begin_line(out);
        std::size_t end = bytes.find('\n');
        std::string_view content = bytes.substr(0, end);
        std::size_t last = content.find_last_not_of('\r');
        if (skip_ == 0) {
            if (last == std::string_view::npos) {
                returns_ += content.size();
            } else {
                out.append(returns_, '\r');
                out.append(content.substr(0, last + 1));
                returns_ = content.size() - last - 1;
            }
        }
        if (end == std::string_view::npos) return;
        returns_ = 0;
        in_line_ = false;
        if (skip_ > 0) {
            --skip_;
        } else {
            --left_;
        }
        bytes.remove_prefix(end + 1);
    }
}

}  // namespace opensandbox::agent
