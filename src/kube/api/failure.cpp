#include "kube/api/failure.hpp"

#include "http/status.hpp"
#include "json/document.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::kube {
namespace {

constexpr std::chrono::seconds kLongestPause{30};
constexpr std::size_t kShownBody = 200;

ErrorCode code_of(int status, std::string_view message) {
    switch (status) {
        case 401: return ErrorCode::unauthenticated;
        case 403:
            // Quotas are admission's, which only knows "forbidden".
            return message.find("exceeded quota") == std::string_view::npos
                       ? ErrorCode::permission_denied
                       : ErrorCode::resource_exhausted;
        case 404:
        case 410: return ErrorCode::not_found;
        case 409:
        case 412: return ErrorCode::conflict;
        case 413: return ErrorCode::too_large;
        case 429: return ErrorCode::resource_exhausted;
        case 503: return ErrorCode::unavailable;
        case 504: return ErrorCode::timeout;
        default: return status < 500 ? ErrorCode::invalid_argument : ErrorCode::bad_gateway;
    }
}

std::string text_of(const json::object& status, std::string_view name) {
    auto text = json::get_string(status, name);
    return text && *text ? **text : std::string();
}

Error failure_in(int status, const json::object& from) {
    std::string message = text_of(from, "message");
    std::string reason = text_of(from, "reason");
    if (message.empty()) message = "the API server answered " + std::to_string(status);
    const ErrorCode code = code_of(status, message);
    return {code, std::move(reason), std::move(message)};
}

}  // namespace

Error failure_of(int status, std::string_view body) {
    auto document = json::parse(body);
    if (document && document->is_object()) return failure_in(status, document->get_object());
    // Proxies and load balancers between us answer with pages of their own.
    std::string message = "the API server answered " + std::to_string(status);
    const std::string_view shown = body.substr(0, body.find_first_of("\r\n"));
    if (!shown.empty() && shown.size() <= kShownBody) message += ": " + std::string(shown);
    return {code_of(status, message), std::move(message)};
}

Error failure_of_event(std::string_view status_object) {
    auto document = json::parse(status_object);
    if (!document || !document->is_object())
        return {ErrorCode::protocol, "the API server's error is no object"};
    auto code = json::get_integer(document->get_object(), "code");
    const bool known = code && *code && **code >= 400 && **code < 600;
    return failure_in(known ? static_cast<int>(**code) : 500, document->get_object());
}

std::optional<std::chrono::milliseconds> pause_before_repeat(const http::ResponseHead& answer,
                                                             Repeating repeating) {
    // 429 is said before anything is done, and so is 503 with a time to come back.
    const auto told = answer.fields.get("Retry-After");
    const bool refused = answer.status == 429 || (answer.status == 503 && told);
    const bool failed = answer.status == 500 || answer.status == 502 || answer.status == 503 ||
                        answer.status == 504;
    if (!refused && !(failed && repeating == Repeating::harmless)) return std::nullopt;
    unsigned seconds = 0;
    if (told) {
        const auto [end, wrong] =
            std::from_chars(told->data(), told->data() + told->size(), seconds);
        if (wrong != std::errc() || end != told->data() + told->size()) seconds = 0;
    }
    return std::min(std::chrono::seconds(seconds), kLongestPause);
}

bool may_repeat(const Error& no_answer, Repeating repeating) {
    // Without a connection nothing was sent.
    if (no_answer.code() == ErrorCode::unavailable) return true;
    return repeating == Repeating::harmless && no_answer.code() == ErrorCode::bad_gateway;
}

}  // namespace opensandbox::kube
