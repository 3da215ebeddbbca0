#include "agent/api/routes.hpp"
#include "agent/ground/reply.hpp"
#include "http/access_path.hpp"
#include "http/reverse_proxy.hpp"

#include <charconv>

namespace opensandbox::agent {
namespace {

constexpr std::string_view kPrefix = "/proxy/";

/// The first hop that is known of, else the peer.
std::string client_address(http::Exchange& exchange) {
    const http::Fields& fields = exchange.request().fields;
    if (auto forwarded = fields.get("X-Forwarded-For")) {
        return std::string(forwarded->substr(0, forwarded->find(',')));
    }
    if (auto real = fields.get("X-Real-IP")) return std::string(*real);
    return exchange.peer_address();
}

/// Tells a proxy in front that the agent speaks here and not the service behind the port.
constexpr const char* kFailureField = "X-EXECD-PROXY-ERROR";

http::Response bad_gateway(const Error& error) {
    json::object body{{"code", "BAD_GATEWAY"}, {"message", error.message()}};
    auto response = http::json_response(502, json::serialize(json::value(std::move(body))));
    response.head.fields.set(kFailureField, std::string(to_string(error.code())));
    return response;
}

Awaitable<void> proxy(Services& services, http::Exchange& exchange) {
    auto to = proxy_target(exchange.request().target);
    if (!to) {
        co_await reply_error(exchange, 400, code::kInvalidBody,
                             "port is required: /proxy/<1 to 65535>/…");
        co_return;
    }
    http::Forwarding forwarding;
    forwarding.origin = http::Origin("127.0.0.1", to->port);
    forwarding.target = std::move(to->target);
    forwarding.edit_request = [from = client_address(exchange)](http::Fields& fields) {
        // The service is the user's: it must not learn what opens the agent.
        fields.erase(http::kAccessTokenField);
        fields.set("X-Forwarded-For", from);
        fields.set("X-Forwarded-Proto", "http");
    };
    forwarding.render_error = bad_gateway;
    co_await http::forward(exchange, services.loopback, std::move(forwarding));
}

}  // namespace

std::optional<ProxyTarget> proxy_target(std::string_view raw_target) {
    if (!raw_target.starts_with(kPrefix)) return std::nullopt;
    raw_target.remove_prefix(kPrefix.size());
    std::size_t end = raw_target.find_first_of("/?");
    std::string_view digits = raw_target.substr(0, end);
    ProxyTarget out;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
    if (digits.empty() || error != std::errc() || stop != digits.data() + digits.size() ||
        out.port == 0) {
        return std::nullopt;
    }
    out.target = end == std::string_view::npos ? "/" : raw_target.substr(end);
    if (out.target.starts_with('?')) out.target.insert(0, "/");
    return out;
}

void take_own_prefix(std::string& target, std::uint16_t own) {
    // All of them: passed on to itself, a request would come back without its token.
    for (auto to = proxy_target(target); to && to->port == own; to = proxy_target(target))
        target = std::move(to->target);
}

void add_proxy_routes(http::Router& router, Services& services) {
    auto handler = [&services](http::Exchange& exchange) { return proxy(services, exchange); };
    router.any("/proxy/{port}/{rest...}", handler);
    router.any("/proxy/{port}", handler);
    router.any("/proxy", handler);
}

}  // namespace opensandbox::agent
