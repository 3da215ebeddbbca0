#include "runtime/docker/engine/failure.hpp"

#include "json/document.hpp"
#include "runtime/docker/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace opensandbox::runtime::docker {
namespace {

bool contains(std::string_view text, std::string_view part) {
    auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) ==
               std::tolower(static_cast<unsigned char>(b));
    };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& parts) {
    return std::ranges::any_of(parts, [text](std::string_view p) { return contains(text, p); });
}

ErrorCode code_of_status(int status) {
    switch (status) {
        case 400: return ErrorCode::invalid_argument;
        case 401: return ErrorCode::unauthenticated;
        case 403: return ErrorCode::permission_denied;
        case 404: return ErrorCode::not_found;
        case 409: return ErrorCode::conflict;
        case 405:
        case 501: return ErrorCode::unsupported;
        case 429: return ErrorCode::resource_exhausted;
        case 502:
        case 503:
        case 504: return ErrorCode::unavailable;
        default: return ErrorCode::internal;
    }
}

/// The `message` of the engine's error document, empty when the body is none.
std::string message_of(std::string_view body) {
    auto document = json::parse(body);
    if (!document || !document->is_object()) return {};
    auto message = json::get_string(document->get_object(), "message");
    return message && *message ? **message : std::string();
}

}  // namespace

std::string presentable(std::string_view text) {
    constexpr std::size_t kLimit = 2000;
    std::size_t size = std::min(text.size(), kLimit);
    // Not inside a character.
    while (size > 0 && size < text.size() &&
           (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) {
        --size;
    }
    std::string shown(text.substr(0, size));
    for (char& c : shown) {
        auto byte = static_cast<unsigned char>(c);
        if (byte < ' ' || byte == 0x7f) c = ' ';
    }
    while (shown.ends_with(' '))
        shown.pop_back();
    return shown;
}

Error error_of_status(int status, std::string_view body) {
    ErrorCode code = code_of_status(status);
    std::string message = message_of(body);
    // An engine has a document for every refusal: what has none, or knows no such route, is none.
    bool meant = !message.empty() && message != "page not found";
    if (!meant && status < 500) code = ErrorCode::bad_gateway;
    if (message.empty()) {
        message = "answered with status " + std::to_string(status);
        bool text = std::ranges::all_of(body, [](char c) {
            auto byte = static_cast<unsigned char>(c);
            return byte < 0x7f && (byte >= ' ' || c == '\n' || c == '\r' || c == '\t');
        });
        if (text && !body.empty()) message += ": " + std::string(body);
    }
    // States that forbid the call, which Docker ("is not paused") and Podman report as failures of
    // theirs.
    constexpr std::array<std::string_view, 4> kForbidden{
        "is not paused", "is not running", "container state improper", "is already in use by"};
    bool forbidden = code == ErrorCode::internal && contains_any(message, kForbidden);
    if (forbidden) code = ErrorCode::conflict;
    if (contains(message, "no space left on device")) code = ErrorCode::resource_exhausted;
    return {code, presentable(message)};
}

Error error_of_pull(std::int64_t code, std::string_view message) {
    constexpr std::array<std::string_view, 4> kUnauthenticated{
        "unauthorized", "authentication required", "no basic auth", "incorrect username"};
    constexpr std::array<std::string_view, 4> kUnknown{"not found", "manifest unknown",
                                                       "no matching manifest", "name unknown"};
    std::string shown = presentable(message);
    if (contains(message, "no space left on device")) return {ErrorCode::resource_exhausted, shown};
    if (code == 404 || contains_any(message, kUnknown)) return {ErrorCode::not_found, shown};
    if (code == 401 || contains_any(message, kUnauthenticated)) {
        return {ErrorCode::unauthenticated, shown};
    }
    if (code == 403 || contains(message, "denied")) return {ErrorCode::permission_denied, shown};
    return {ErrorCode::bad_gateway, shown};
}

bool is_port_conflict(const Error& error) {
    constexpr std::array<std::string_view, 3> kTaken{
        "port is already allocated", "address already in use", "ports are not available"};
    return contains_any(error.message(), kTaken);
}

}  // namespace opensandbox::runtime::docker
