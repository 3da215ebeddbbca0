#include "json/document.hpp"
#include "registry/authentication.hpp"

#include <algorithm>

namespace opensandbox::registry {
namespace {

constexpr std::int64_t kShortest = 60;  ///< what a server that says nothing means, and the least
constexpr std::int64_t kLongest = 86'400;
constexpr std::size_t kLargest = std::size_t{64} << 10;

Error wrong(std::string_view what) {
    return {ErrorCode::bad_gateway, "the token server's answer " + std::string(what)};
}

/// It goes into a header field.
bool is_clean(std::string_view token) {
    return !token.empty() && token.size() <= kLargest &&
           std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

Result<Token> parse_token(std::string_view text) {
    auto document = json::parse(text);
    if (!document || !document->is_object()) return wrong("is no JSON object");
    const json::object& object = document->get_object();
    auto token = json::get_string(object, "token");
    auto access = json::get_string(object, "access_token");
    auto seconds = json::get_integer(object, "expires_in");
    if (!token || !access || !seconds) return wrong("has members of wrong types");
    Token found;
    found.value = *token ? **token : access->value_or("");
    if (!is_clean(found.value)) return wrong("holds no token");
    found.lifetime =
        std::chrono::seconds(std::clamp(seconds->value_or(kShortest), kShortest, kLongest));
    return found;
}

}  // namespace opensandbox::registry
