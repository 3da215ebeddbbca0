#include "server/error_response.hpp"

#include "http/status.hpp"
#include "model/json_text.hpp"

#include <cctype>

namespace opensandbox::server {
namespace {

constexpr int kTooManyRequests = 429;
/// Seconds. What is used up comes back when somebody deletes or something expires.
constexpr const char* kRetryAfter = "5";

/// For errors that the contract does not name: GENERAL::TOO_LARGE and the like.
std::string general_code(ErrorCode code) {
    if (code == ErrorCode::internal || code == ErrorCode::io) return "GENERAL::UNKNOWN_ERROR";
    std::string name = "GENERAL::";
    for (char c : to_string(code))
        name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

}  // namespace

http::Response error_response(int status, std::string_view code, std::string_view message) {
    std::string body = "{\"code\":";
    append_json_string(body, code);
    body += ",\"message\":";
    append_json_string(body, message.empty() ? "An unexpected error occurred." : message);
    body += '}';
    return http::json_response(status, std::move(body));
}

http::Response error_response(const Error& error) {
    std::string code = error.wire().empty() ? general_code(error.code()) : error.wire();
    int status = http::status_of(error.code());
    auto response = error_response(status, code, error.message());
    if (status == kTooManyRequests) response.head.fields.set("Retry-After", kRetryAfter);
    return response;
}

http::Response render_backend_error(const Error& error, const std::string& backend) {
    if (error.code() == ErrorCode::timeout) {
        return error_response(
            504, "BACKEND_TIMEOUT",
            "The backend (" + backend + ") did not answer in time: " + error.message());
    }
    if (error.code() == ErrorCode::unavailable) {
        return error_response(
            502, "BACKEND_CONNECTION_FAILED",
            "Could not connect to the backend (" + backend + "): " + error.message());
    }
    if (error.code() == ErrorCode::bad_gateway) {
        return error_response(
            502, "BACKEND_RESPONSE_FAILED",
            "The backend (" + backend +
                ") dropped the connection or sent an invalid response: " + error.message());
    }
    return error_response(error);
}

http::Response validation_response(const model::FieldErrors& errors) {
    return http::json_response(422, model::to_json(errors));
}

http::Response no_room() {
    return http::Response(503, "text/plain; charset=utf-8", "Service Unavailable");
}

http::Response unknown_route() {
    return http::json_response(404, "{\"detail\":\"Not Found\"}");
}

http::Response wrong_method(const std::vector<std::string>& allowed) {
    auto response = http::json_response(405, "{\"detail\":\"Method Not Allowed\"}");
    std::string list;
    for (const std::string& method : allowed)
        list += (list.empty() ? "" : ", ") + method;
    response.head.fields.set("Allow", list);
    return response;
}

}  // namespace opensandbox::server
