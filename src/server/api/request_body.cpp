#include "server/api/request_body.hpp"

#include "model/field_rule.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {

Awaitable<std::optional<std::string>> read_json_body(http::Exchange& exchange) {
    auto body = co_await http::read_all(exchange.body(), kMaxJsonBody);
    if (body) co_return std::move(body.value());
    if (body.error().code() != ErrorCode::cancelled) {
        auto refusal = error_response(body.error().within("request body"));
        co_await exchange.respond(std::move(refusal));
    }
    co_return std::nullopt;
}

std::string_view mount_of(const http::Exchange& exchange) {
    return exchange.request().path().starts_with("/v1/") ? "/v1" : "";
}

std::string sandbox_id_of(http::Exchange& exchange) {
    exchange.sandbox_id = exchange.parameter("sandbox_id");
    return exchange.sandbox_id;
}

std::optional<std::uint16_t> parse_port(std::string_view text, const std::string& invalid_port_code,
                                        http::Response& refusal) {
    auto number = model::lax_integer(text);
    if (!number) {
        model::FieldErrors errors;
        model::Location at{std::string("path"), std::string("port")};
        errors.emplace_back("int_parsing", at,
                            "Input should be a valid integer, unable to parse string as an integer",
                            model::json_string(text));
        refusal = validation_response(errors);
        return std::nullopt;
    }
    if (*number < 1 || *number > 65535) {
        refusal = error_response(400, invalid_port_code, "Port must be between 1 and 65535.");
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(*number);
}

}  // namespace opensandbox::server
