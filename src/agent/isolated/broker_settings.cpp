#include "agent/isolated/broker_settings.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxVariables = 10'000;

/// What stands before the next NUL; empty when there is none.
std::optional<std::string_view> next_piece(std::string_view& rest) {
    std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view piece = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return piece;
}

/// An id that is not the one which means "leave it as it is".
std::optional<std::uint32_t> next_id(std::string_view& rest) {
    auto piece = next_piece(rest);
    if (!piece) return std::nullopt;
    std::uint32_t id = 0;
    auto [end, error] = std::from_chars(piece->data(), piece->data() + piece->size(), id);
    if (piece->empty() || error != std::errc() || end != piece->data() + piece->size() ||
        id == UINT32_MAX) {
        return std::nullopt;
    }
    return id;
}

}  // namespace

std::string encode(const BrokerSettings& settings) {
    std::string out;
    out += std::to_string(settings.uid) + '\0';
    out += std::to_string(settings.gid) + '\0';
    for (const auto& [name, value] : settings.environment)
        out += name + '=' + value + '\0';
    return out;
}

Result<BrokerSettings> parse_broker_settings(std::string_view text) {
    BrokerSettings out;
    auto uid = next_id(text);
    auto gid = uid ? next_id(text) : std::nullopt;
    if (!gid) return Error(ErrorCode::invalid_argument, "settings: no user and group");
    out.uid = *uid;
    out.gid = *gid;
    while (!text.empty()) {
        auto entry = next_piece(text);
        std::size_t equals = entry ? entry->find('=') : std::string_view::npos;
        if (equals == std::string_view::npos || equals == 0) {
            return Error(ErrorCode::invalid_argument, "settings: not a variable");
        }
        if (out.environment.size() == kMaxVariables) {
            return Error(ErrorCode::invalid_argument, "settings: too many variables");
        }
        out.environment.emplace_back(entry->substr(0, equals), entry->substr(equals + 1));
    }
    return out;
}

}  // namespace opensandbox::agent
