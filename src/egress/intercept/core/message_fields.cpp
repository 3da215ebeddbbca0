#include "egress/intercept/core/message_fields.hpp"

#include <array>
#include <vector>

namespace opensandbox::egress {
namespace {

constexpr std::array<std::string_view, 7> kHopFields{
    "Connection", "Keep-Alive",        "Proxy-Connection", "Proxy-Authorization",
    "TE",         "Transfer-Encoding", "Upgrade"};

std::string_view trim(std::string_view text) {
    auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// What framing, routing and credentials stand on cannot be dropped by naming it in Connection.
bool may_be_named(std::string_view name) {
    for (std::string_view kept : {"Content-Length", "Host", "Authorization", "Cookie"}) {
        if (http::equal_ignoring_case(name, kept)) return false;
    }
    return !name.empty();
}

std::vector<std::string> named_by_connection(const http::Fields& fields) {
    std::vector<std::string> names;
    for (const auto& [name, value] : fields) {
        if (!http::equal_ignoring_case(name, "Connection")) continue;
        std::string_view rest = value;
        while (!rest.empty()) {
            auto comma = rest.find(',');
            std::string_view token = trim(rest.substr(0, comma));
            if (may_be_named(token)) names.emplace_back(token);
            rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        }
    }
    return names;
}

}  // namespace

void strip_hop_fields(http::Fields& fields) {
    for (const std::string& name : named_by_connection(fields))
        fields.erase(name);
    for (std::string_view name : kHopFields)
        fields.erase(name);
    if (auto length = fields.get("Content-Length")) {
        fields.set("Content-Length", std::string(*length));
    }
}

std::optional<std::string> upgrade_protocol(const http::Fields& fields) {
    if (!fields.has_token("Connection", "upgrade")) return std::nullopt;
    std::optional<std::string> found;
    for (const auto& [name, value] : fields) {
        if (!http::equal_ignoring_case(name, "Upgrade")) continue;
        if (found || value.find(',') != std::string::npos) return std::nullopt;
        found = value;
    }
    return found;
}

bool has_doubtful_coding(const http::Fields& fields, int minor_version) {
    std::size_t count = 0;
    for (const auto& entry : fields)
        count += http::equal_ignoring_case(entry.first, "Transfer-Encoding") ? 1 : 0;
    return count > 1 || (count == 1 && minor_version == 0);
}

http::Response refusal_page(int status, const std::string& text) {
    http::Response page(status, "text/plain; charset=utf-8", text + "\n");
    page.head.fields.set("Cache-Control", "no-store");
    return page;
}

}  // namespace opensandbox::egress
