#include "http/head_parser.hpp"

#include "http/fields.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace opensandbox::http {

const std::string_view kTooManyFields = "too many header fields";

namespace {

constexpr std::size_t kMaxMethod = 32;

constexpr std::array<bool, 256> token_table() {
    std::array<bool, 256> table{};
    for (char c : std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
        table[static_cast<unsigned char>(c)] = true;
    }
    return table;
}

/// Text of a field value: visible characters, blanks, tabs and bytes above ASCII.
constexpr std::array<bool, 256> value_table() {
    std::array<bool, 256> table{};
    for (std::size_t i = 0x20; i < 256; ++i)
        table[i] = i != 0x7f;
    table['\t'] = true;
    return table;
}

constexpr auto kTokenCharacters = token_table();
constexpr auto kValueCharacters = value_table();

bool all_in(const std::array<bool, 256>& table, std::string_view text) {
    for (char c : text) {
        if (!table[static_cast<unsigned char>(c)]) return false;
    }
    return true;
}

bool is_target(std::string_view text) {
    return !text.empty() && all_in(kValueCharacters, text) &&
           text.find_first_of(" \t") == std::string_view::npos;
}

/// Takes the next line without its CRLF; the scanner saw to it that every line has one.
std::string_view take_line(std::string_view& rest) {
    auto end = rest.find("\r\n");
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
    return line;
}

/// "HTTP/1.0" or "HTTP/1.1": the minor version; -1 for another version, -2 for something else.
int parse_version(std::string_view text) {
    if (text == "HTTP/1.1") return 1;
    if (text == "HTTP/1.0") return 0;
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    bool version = text.size() == 8 && text.substr(0, 5) == "HTTP/" && digit(text[5]) &&
                   text[6] == '.' && digit(text[7]);
    if (!version) return -2;
    // A later minor version is to be treated as the highest one known.
    return text[5] == '1' ? 1 : -1;
}

std::optional<std::string_view> parse_field(std::string_view line, Fields& out) {
    if (line.front() == ' ' || line.front() == '\t') return "folded header line";
    auto colon = line.find(':');
    if (colon == std::string_view::npos) return "header line without a colon";
    std::string_view name = line.substr(0, colon);
    if (!is_token(name)) return "malformed header name";
    std::string_view value = trim(line.substr(colon + 1));
    if (!all_in(kValueCharacters, value)) return "control character in a header value";
    out.add(std::string(name), std::string(value));
    return std::nullopt;
}

/// Reads every Content-Length of the fields; equal ones count as one.
std::optional<std::string_view> parse_length(const Fields& fields,
                                             std::optional<std::uint64_t>& out) {
    for (const auto& [name, value] : fields) {
        if (!equal_ignoring_case(name, "Content-Length")) continue;
        std::uint64_t length = 0;
        bool digits = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
        auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), length);
        if (!digits || failure != std::errc() || length > INT64_MAX) {
            return "malformed Content-Length";
        }
        if (out && *out != length) return "differing Content-Length fields";
        out = length;
    }
    return std::nullopt;
}

/// Splits an absolute-form target; false when it is none.
bool split_absolute(std::string_view target, std::string_view& authority, std::string_view& rest) {
    auto scheme_end = target.find("://");
    if (scheme_end == std::string_view::npos) return false;
    std::string_view scheme = target.substr(0, scheme_end);
    if (!equal_ignoring_case(scheme, "http") && !equal_ignoring_case(scheme, "https")) return false;
    target.remove_prefix(scheme_end + 3);
    auto end = target.find_first_of("/?");
    authority = target.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : target.substr(end);
    return !authority.empty();
}

std::optional<Refusal> parse_target(std::string_view target, RequestHead& out) {
    if (!is_target(target)) return Refusal(400, "malformed request target");
    if (target.front() == '/' || (target == "*" && out.method == "OPTIONS")) {
        out.target = target;
    } else {
        std::string_view authority;
        std::string_view rest;
        if (!split_absolute(target, authority, rest)) {
            return Refusal(400, "malformed request target");
        }
        out.target =
            rest.empty() || rest.front() != '/' ? "/" + std::string(rest) : std::string(rest);
        out.fields.set("Host", std::string(authority));
    }
    return std::nullopt;
}

}  // namespace

bool is_token(std::string_view text) {
    return !text.empty() && all_in(kTokenCharacters, text);
}

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
    while (scanned_ < bytes.size()) {
        const void* found = std::memchr(bytes.data() + scanned_, '\n', bytes.size() - scanned_);
        if (found == nullptr) {
            scanned_ = bytes.size();
            return State::incomplete;
        }
        auto at = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
        if (at == 0 || bytes[at - 1] != '\r') return State::malformed;
        scanned_ = at + 1;
        if (at - 1 == line_start_) return State::complete;
        line_start_ = at + 1;
    }
    return State::incomplete;
}

std::size_t leading_empty_lines(std::string_view bytes) {
    std::size_t count = 0;
    while (bytes.substr(count, 2) == "\r\n")
        count += 2;
    return count;
}

std::optional<std::string_view> parse_fields(std::string_view lines, Fields& out) {
    std::size_t count = 0;
    while (!lines.empty()) {
        std::string_view line = take_line(lines);
        if (line.empty()) break;
        if (++count > kMaxFieldCount) return kTooManyFields;
        if (auto reason = parse_field(line, out)) return reason;
    }
    return std::nullopt;
}

std::optional<Refusal> parse_request_head(std::string_view head, RequestHead& out) {
    std::string_view line = take_line(head);
    auto first = line.find(' ');
    auto last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) {
        return Refusal(400, "malformed request line");
    }
    std::string_view method = line.substr(0, first);
    if (!is_token(method) || method.size() > kMaxMethod) {
        return Refusal(400, "malformed request method");
    }
    int version = parse_version(line.substr(last + 1));
    if (version == -1) return Refusal(505, "this server speaks HTTP/1.1");
    if (version < 0) return Refusal(400, "malformed request line");
    out.method = method;
    out.minor_version = version;
    if (auto reason = parse_fields(head, out.fields)) {
        return Refusal(*reason == kTooManyFields ? 431 : 400, *reason);
    }
    std::size_t hosts = 0;
    for (const auto& entry : out.fields)
        hosts += equal_ignoring_case(entry.first, "Host") ? 1 : 0;
    if (hosts > 1) return Refusal(400, "more than one Host");
    if (hosts == 0 && version == 1) return Refusal(400, "no Host");
    return parse_target(line.substr(first + 1, last - first - 1), out);
}

std::optional<std::string_view> parse_response_head(std::string_view head, ParsedResponse& out) {
    std::string_view line = take_line(head);
    if (line.size() < 12 || line[8] != ' ') return "malformed status line";
    int version = parse_version(line.substr(0, 8));
    if (version < 0) return "not an HTTP/1 response";
    int status = 0;
    for (std::size_t i = 9; i < 12; ++i) {
        if (line[i] < '0' || line[i] > '9') return "malformed status code";
        status = status * 10 + (line[i] - '0');
    }
    if (status < 100 || (line.size() > 12 && line[12] != ' ')) return "malformed status line";
    if (!all_in(kValueCharacters, line)) return "control character in the status line";
    out.head.status = status;
    out.minor_version = version;
    return parse_fields(head, out.head.fields);
}

std::optional<Refusal> request_framing(const RequestHead& head, Framing& out) {
    std::optional<std::uint64_t> length;
    if (auto reason = parse_length(head.fields, length)) return Refusal(400, *reason);
    if (auto coding = head.fields.get("Transfer-Encoding")) {
        if (length) return Refusal(400, "both Content-Length and Transfer-Encoding");
        if (head.minor_version == 0) return Refusal(400, "Transfer-Encoding in HTTP/1.0");
        std::size_t count = 0;
        for (const auto& entry : head.fields) {
            count += equal_ignoring_case(entry.first, "Transfer-Encoding") ? 1 : 0;
        }
        if (count > 1) return Refusal(400, "more than one Transfer-Encoding");
        if (!equal_ignoring_case(*coding, "chunked")) {
            return Refusal(501, "unknown Transfer-Encoding");
        }
        out.kind = Framing::Kind::chunked;
    } else if (length && *length > 0) {
        out.kind = Framing::Kind::length;
        out.length = *length;
    }
    return std::nullopt;
}

std::optional<std::string_view> response_framing(const ParsedResponse& response,
                                                 std::string_view request_method, Framing& out) {
    int status = response.head.status;
    std::optional<std::uint64_t> length;
    bool bodiless = request_method == "HEAD" || status < 200 || status == 204 || status == 304;
    if (auto reason = parse_length(response.head.fields, length)) return reason;
    if (bodiless) return std::nullopt;
    if (auto coding = response.head.fields.get("Transfer-Encoding")) {
        if (!equal_ignoring_case(*coding, "chunked")) return "unknown Transfer-Encoding";
        if (length) return "both Content-Length and Transfer-Encoding";
        out.kind = Framing::Kind::chunked;
    } else if (length) {
        out.kind = *length > 0 ? Framing::Kind::length : Framing::Kind::none;
        out.length = *length;
    } else {
        out.kind = Framing::Kind::until_close;
    }
    return std::nullopt;
}

bool keeps_alive(const Fields& fields, int minor_version) {
    if (fields.has_token("Connection", "close")) return false;
    return minor_version >= 1 || fields.has_token("Connection", "keep-alive");
}

}  // namespace opensandbox::http
