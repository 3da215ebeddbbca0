#include "http/serialize.hpp"

#include "base/json_string.hpp"
#include "http/head_parser.hpp"

#include <charconv>
#include <cstdio>
#include <ctime>

namespace opensandbox::http {
namespace {

constexpr std::string_view kForbidden("\r\n\0", 3);

void append_number(std::string& out, std::uint64_t number, int base = 10) {
    char digits[20];
    auto [end, failure] = std::to_chars(digits, digits + sizeof(digits), number, base);
    out.append(digits, end);
}

}  // namespace

void append_status_line(std::string& out, int status) {
    if (status == 200) {
        out += "HTTP/1.1 200 OK\r\n";
        return;
    }
    out += "HTTP/1.1 ";
    append_number(out, static_cast<std::uint64_t>(status));
    out += ' ';
    out += reason_phrase(status);
    out += "\r\n";
}

void append_request_line(std::string& out, std::string_view method, std::string_view target) {
    out += method;
    out += ' ';
    out += target;
    out += " HTTP/1.1\r\n";
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
    if (!is_token(name)) return;
    out += name;
    out += ": ";
    auto start = out.size();
    out += value;
    if (value.find_first_of(kForbidden) != std::string_view::npos) {
        for (auto i = start; i < out.size(); ++i) {
            if (kForbidden.find(out[i]) != std::string_view::npos) out[i] = ' ';
        }
    }
    out += "\r\n";
}

void append_fields(std::string& out, const Fields& fields) {
    for (const auto& [name, value] : fields)
        append_field(out, name, value);
}

std::string chunk_prefix(std::size_t size) {
    std::string prefix;
    append_number(prefix, size, 16);
    prefix += "\r\n";
    return prefix;
}

std::string_view HttpDate::now() {
    std::time_t second = std::time(nullptr);
    if (second != second_) {
        std::tm parts{};
        ::gmtime_r(&second, &parts);
        constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
        constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        char text[64];
        int size = std::snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                 kDays[parts.tm_wday], parts.tm_mday, kMonths[parts.tm_mon],
                                 parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
        text_.assign(text, static_cast<std::size_t>(size));
        second_ = second;
    }
    return text_;
}

std::string error_body(std::string_view code, std::string_view message) {
    std::string out = "{\"code\":";
    append_json_string(out, code);
    out += ",\"message\":";
    append_json_string(out, message);
    out += '}';
    return out;
}

}  // namespace opensandbox::http
