#include "opensandbox/diagnostics.hpp"

#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

Result<std::string> target_of(std::string_view id, std::string_view page, const Query& query) {
    if (id.empty()) return Error(ErrorCode::invalid_argument, "the sandbox id is empty");
    std::string target =
        "/sandboxes/" + http::percent_encode(id) + "/diagnostics/" + std::string(page);
    if (!query.empty()) target += "?" + encode_query(query);
    return target;
}

Awaitable<Result<std::string>> fetch(Connection connection, Result<std::string> target,
                                     std::string accepted) {
    if (!target) co_return target.error();
    Call call("GET", std::move(*target));
    call.fields.set("Accept", std::move(accepted));
    Transport& transport = *connection.transport();
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return std::move(reply->body);
}

Awaitable<Result<DiagnosticContent>> content_of(Connection connection, std::string id,
                                                std::string page, std::string scope) {
    const Query query{{"scope", std::move(scope)}};
    auto body = co_await fetch(connection, target_of(id, page, query), "application/json");
    if (!body) co_return body.error();
    co_return wire::decode_diagnostic_content(*body);
}

constexpr const char* kText = "text/plain";

}  // namespace

Awaitable<Result<DiagnosticContent>> Diagnostics::logs(std::string id, std::string scope) const {
    return content_of(connection_, std::move(id), "logs", std::move(scope));
}

Awaitable<Result<DiagnosticContent>> Diagnostics::events(std::string id, std::string scope) const {
    return content_of(connection_, std::move(id), "events", std::move(scope));
}

// Taken by value as by all calls of the client, which are coroutines.
// NOLINTBEGIN(performance-unnecessary-value-param)

Awaitable<Result<std::string>> Diagnostics::log_text(std::string id, unsigned tail,
                                                     std::string since) const {
    Query query{{"tail", std::to_string(tail)}};
    if (!since.empty()) query.emplace_back("since", std::move(since));
    return fetch(connection_, target_of(id, "logs", query), kText);
}

Awaitable<Result<std::string>> Diagnostics::event_text(std::string id, unsigned limit) const {
    const Query query{{"limit", std::to_string(limit)}};
    return fetch(connection_, target_of(id, "events", query), kText);
}

Awaitable<Result<std::string>> Diagnostics::inspect(std::string id) const {
    return fetch(connection_, target_of(id, "inspect", {}), kText);
}

Awaitable<Result<std::string>> Diagnostics::summary(std::string id, unsigned tail,
                                                    unsigned event_limit) const {
    const Query query{{"tail", std::to_string(tail)}, {"event_limit", std::to_string(event_limit)}};
    return fetch(connection_, target_of(id, "summary", query), kText);
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace opensandbox::sdk
