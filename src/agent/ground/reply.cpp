#include "agent/ground/reply.hpp"

#include "base/json_string.hpp"

namespace opensandbox::agent {
namespace {

const char* default_code(ErrorCode kind) {
    switch (kind) {
        case ErrorCode::invalid_argument:
        case ErrorCode::protocol:
        case ErrorCode::too_large: return code::kInvalidBody;
        case ErrorCode::not_found: return code::kFileNotFound;
        case ErrorCode::unsupported: return code::kNotSupported;
        default: return code::kRuntimeError;
    }
}

}  // namespace

int status_for(const Error& error) {
    switch (error.code()) {
        case ErrorCode::invalid_argument:
        case ErrorCode::protocol: return 400;
        case ErrorCode::permission_denied: return 403;
        case ErrorCode::not_found: return 404;
        case ErrorCode::too_large: return 413;
        case ErrorCode::unsupported: return 503;
        default: return 500;
    }
}

Awaitable<void> reply_error(http::Exchange& exchange, int status, std::string code,
                            std::string message) {
    std::string body = "{\"code\":";
    append_json_string(body, code);
    body += ",\"message\":";
    append_json_string(body, message);
    body += '}';
    co_await reply_json(exchange, status, std::move(body));
}

Awaitable<void> reply_error(http::Exchange& exchange, Error error) {
    std::string code = error.wire();
    if (code.empty()) code = default_code(error.code());
    co_await reply_error(exchange, status_for(error), std::move(code), error.message());
}

Awaitable<void> reply_empty(http::Exchange& exchange) {
    co_await exchange.respond(http::Response(200));
}

Awaitable<void> reply_json(http::Exchange& exchange, int status, std::string body) {
    http::Response response(status, "application/json; charset=utf-8", std::move(body));
    co_await exchange.respond(std::move(response));
}

Awaitable<Result<json::value>> read_json(http::Exchange& exchange) {
    Result<std::string> text = co_await http::read_all(exchange.body(), kMaxJsonBody);
    if (!text) co_return text.error();
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
        co_return Error(ErrorCode::invalid_argument, "the request body is empty");
    }
    co_return json::parse(*text);
}

json::object with_lower_names(const json::object& from) {
    json::object out;
    for (const auto& [name, value] : from) {
        std::string lower(name);
        for (char& c : lower) {
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        }
        out.insert_or_assign(lower, value);
    }
    return out;
}

}  // namespace opensandbox::agent
