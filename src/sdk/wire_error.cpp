#include "sdk/retry.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kMaxQuoted = 500;

ErrorCode code_of_status(int status) {
    switch (status) {
        case 400:
        case 416:
        case 422: return ErrorCode::invalid_argument;
        case 401: return ErrorCode::unauthenticated;
        case 403: return ErrorCode::permission_denied;
        case 404: return ErrorCode::not_found;
        case 409: return ErrorCode::conflict;
        case 413: return ErrorCode::too_large;
        case 429: return ErrorCode::resource_exhausted;
        case 405:
        case 501: return ErrorCode::unsupported;
        case 502: return ErrorCode::bad_gateway;
        case 503: return ErrorCode::unavailable;
        case 504: return ErrorCode::timeout;
        default: return status < 400 ? ErrorCode::protocol : ErrorCode::internal;
    }
}

/// One entry of a validation report: {"loc":["body","timeout"],"msg":"…"} reads "timeout: …".
std::string validation_line(const json::object& entry) {
    std::string where;
    if (const json::value* loc = json::find(entry, "loc"); loc && loc->is_array()) {
        for (const json::value& part : loc->get_array()) {
            std::string text =
                part.is_string() ? std::string(part.get_string()) : json::serialize(part);
            if (where.empty() && (text == "body" || text == "query" || text == "path")) continue;
            where += (where.empty() ? "" : ".") + text;
        }
    }
    const json::value* msg = json::find(entry, "msg");
    std::string text = msg && msg->is_string() ? std::string(msg->get_string()) : "is not valid";
    return where.empty() ? text : where + ": " + text;
}

struct Said {
    std::string code;
    std::string message;
};

void read_detail(const json::value& detail, Said& said) {
    if (detail.is_string()) {
        said.message = std::string(detail.get_string());
    } else if (detail.is_object()) {
        wire::ObjectReader in(detail.get_object());
        said.code = in.optional_string("code").value_or("");
        said.message = in.optional_string("message").value_or("");
    } else if (detail.is_array()) {
        for (const json::value& entry : detail.get_array()) {
            if (!entry.is_object()) continue;
            if (!said.message.empty()) said.message += "; ";
            said.message += validation_line(entry.get_object());
        }
    }
}

Said read_body(std::string_view body) {
    Said said;
    auto document = wire::parse_object(body);
    if (!document) {
        said.message = std::string(body.substr(0, kMaxQuoted));
        while (!said.message.empty() && static_cast<unsigned char>(said.message.back()) <= ' ') {
            said.message.pop_back();
        }
        return said;
    }
    wire::ObjectReader in(*document);
    said.code = in.optional_string("code").value_or("");
    said.message = in.optional_string("message").value_or("");
    if (said.message.empty()) said.message = in.optional_string("error").value_or("");
    if (const json::value* detail = json::find(*document, "detail")) read_detail(*detail, said);
    return said;
}

}  // namespace

Error error_of_answer(int status, const http::Fields& fields, std::string_view body) {
    Said said = read_body(body);
    if (said.message.empty()) {
        said.message = "the server answered " + std::to_string(status) + " " +
                       std::string(http::reason_phrase(status));
    }
    Error error(code_of_status(status), status, std::move(said.code), std::move(said.message),
                std::string(fields.get("X-Request-ID").value_or("")));
    auto wait = fields.get("Retry-After");
    if (!wait) return error;
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    return error.with_retry_after(parse_retry_after(*wait, now));
}

}  // namespace opensandbox::sdk
