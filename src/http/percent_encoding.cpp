#include "http/message.hpp"

namespace opensandbox::http {
namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/// Decodes into `out`; false when an escape was malformed, which is then kept as it stands.
bool decode(std::string_view text, bool plus_is_space, std::string& out) {
    bool well_formed = true;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && plus_is_space) {
            out += ' ';
        } else if (text[i] != '%') {
            out += text[i];
        } else {
            int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                well_formed = false;
                out += '%';
                continue;
            }
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return well_formed;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    if (!decode(text, plus_is_space, out)) return std::nullopt;
    return out;
}

std::string percent_encode(std::string_view text, std::string_view keep) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    out.reserve(text.size());
    for (char c : text) {
        if (is_unreserved(c) || keep.find(c) != std::string_view::npos) {
            out += c;
            continue;
        }
        auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
    }
    return out;
}

Query::Query(std::string_view raw) {
    while (!raw.empty()) {
        auto end = raw.find('&');
        std::string_view item = raw.substr(0, end);
        raw = end == std::string_view::npos ? std::string_view() : raw.substr(end + 1);
        if (item.empty()) continue;
        auto equals = item.find('=');
        std::string name;
        std::string value;
        decode(item.substr(0, equals), true, name);
        if (equals != std::string_view::npos) decode(item.substr(equals + 1), true, value);
        items_.emplace_back(std::move(name), std::move(value));
    }
}

std::optional<std::string_view> Query::get(std::string_view name) const {
    for (const auto& [key, value] : items_) {
        if (key == name) return value;
    }
    return std::nullopt;
}

std::vector<std::string_view> Query::all(std::string_view name) const {
    std::vector<std::string_view> values;
    for (const auto& [key, value] : items_) {
        if (key == name) values.push_back(value);
    }
    return values;
}

}  // namespace opensandbox::http
