#include "sdk/egress_exchange.hpp"

#include "opensandbox/sandbox.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::uint16_t kEgressPort = 18080;
constexpr std::string_view kPolicy = "/policy";

/// Sandboxes of a template have their policy at the server alone (lifecycle contract 3.1, 3.5).
Awaitable<Result<Reply>> exchange_at_server(Transport& transport, std::string id, Call call) {
    if (call.target != kPolicy) {
        co_return Error(ErrorCode::unsupported,
                        "sandboxes made from a template have no credential vault");
    }
    call.target = "/sandboxes/" + http::percent_encode(id) + "/networkpolicy";
    co_return co_await transport.exchange(transport.lifecycle(), std::move(call));
}

}  // namespace

Awaitable<Result<Reply>> exchange_egress(Connection connection, std::string id, Call call) {
    Sandboxes sandboxes(connection);
    auto endpoint = co_await sandboxes.endpoint(id, kEgressPort);
    if (!endpoint) co_return endpoint.error();
    Transport& transport = *connection.transport();
    if (endpoint->origin == "template") {
        co_return co_await exchange_at_server(transport, std::move(id), std::move(call));
    }
    http::Fields headers;
    for (const auto& [name, value] : endpoint->headers)
        headers.set(name, value);
    auto found = transport.route_to(endpoint->endpoint, headers);
    if (!found) co_return found.error();
    auto route = std::make_shared<const Route>(std::move(*found));
    auto reply = co_await transport.exchange(std::move(route), std::move(call));
    const bool silent = !reply && reply.error().status() == 0 &&
                        (reply.error().code() == ErrorCode::unavailable ||
                         reply.error().code() == ErrorCode::timeout);
    if (silent) {
        co_return Error(ErrorCode::bad_gateway,
                        "the egress control of sandbox " + id +
                            " does not answer; only one that was created with a network policy "
                            "has it (" +
                            reply.error().message() + ")");
    }
    co_return reply;
}

}  // namespace opensandbox::sdk
