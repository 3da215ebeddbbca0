#include "egress/vault/header_names.hpp"

#include "http/fields.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::egress {
namespace {

using http::equal_ignoring_case;

constexpr std::array<std::string_view, 14> kReserved{"host",
                                                     "content-length",
                                                     "content-type",
                                                     "transfer-encoding",
                                                     "connection",
                                                     "upgrade",
                                                     "te",
                                                     "trailer",
                                                     "proxy-authorization",
                                                     "proxy-authenticate",
                                                     "forwarded",
                                                     "x-forwarded-for",
                                                     "x-forwarded-host",
                                                     "x-forwarded-proto"};

constexpr std::array<std::string_view, 8> kProtected{
    "keep-alive",       "proxy-connection", "expect",  "http2-settings",
    "content-encoding", "origin",           "referer", "via"};

bool is_one_of(std::string_view name, const auto& names) {
    return std::ranges::any_of(names,
                               [&](std::string_view n) { return equal_ignoring_case(name, n); });
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool is_header_name(std::string_view name) {
    constexpr std::string_view kOther = "!#$%&'*+-.^_`|~0123456789";
    return !name.empty() && std::ranges::all_of(name, [&](char c) {
        return is_letter(c) || kOther.find(c) != kOther.npos;
    });
}

bool is_header_value(std::string_view value) {
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    if (value.empty() || is_space(value.front()) || is_space(value.back())) return false;
    return std::ranges::none_of(value, [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    });
}

std::string canonical_header_name(std::string_view name) {
    std::string out(name);
    bool upper = true;
    for (char& c : out) {
        if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        upper = c == '-';
    }
    return out;
}

bool is_reserved_header(std::string_view name) {
    return is_one_of(name, kReserved);
}

bool is_protected_header(std::string_view name) {
    // ":authority" and its like are no headers.
    if (name.empty() || name.front() == ':') return true;
    return is_reserved_header(name) || is_one_of(name, kProtected) ||
           equal_ignoring_case(name.substr(0, 4), "sec-");
}

}  // namespace opensandbox::egress
