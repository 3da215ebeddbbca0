#include "egress/vault/request_path.hpp"

#include "http/message.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace opensandbox::egress {
namespace {

constexpr int kDecodings = 3;

bool has_dot_segment(std::string_view path) {
    while (true) {
        const auto end = path.find_first_of("/\\");
        std::string_view segment = path.substr(0, end);
        segment = segment.substr(0, segment.find(';'));
        if (segment == "." || segment == "..") return true;
        if (end == path.npos) return false;
        path.remove_prefix(end + 1);
    }
}

bool has_control(std::string_view path) {
    return std::ranges::any_of(
        path, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

bool leaves_its_place(std::string_view raw_path) {
    if (raw_path.find('#') != raw_path.npos) return true;
    std::string path(raw_path);
    for (int i = 0;; ++i) {
        if (has_control(path) || has_dot_segment(path)) return true;
        if (path.find('%') == std::string::npos) return false;
        std::optional<std::string> decoded = http::percent_decode(path);
        // What was decoded already may hold a percent sign that begins no escape.
        if (!decoded) return i == 0;
        if (i == kDecodings) return true;
        path = std::move(*decoded);
    }
}

}  // namespace opensandbox::egress
