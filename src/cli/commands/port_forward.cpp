#include "base/scope_exit.hpp"
#include "cli/invocation.hpp"
#include "cli/port_mapping.hpp"
#include "http/reverse_proxy.hpp"
#include "http/server.hpp"
#include "http/splice.hpp"
#include "net/task.hpp"
#include "sdk/transport.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::chrono::milliseconds kConnectPatience{10'000};
constexpr std::string_view kLoopback = "127.0.0.1";

/// Copies between one local connection and the sandbox's port.
Awaitable<void> carry(std::unique_ptr<net::Stream> local, http::Origin origin) {
    auto remote = co_await net::connect_tcp(origin.host, origin.port, kConnectPatience);
    if (!remote) co_return;  // the local client sees its connection closed
    http::Upgraded near(std::move(local), std::string());
    http::Upgraded far(std::move(*remote), std::string());
    co_await http::splice(std::move(near), std::move(far));
}

Awaitable<void> accept_all(std::shared_ptr<net::Listener> listener, http::Origin origin) {
    for (;;) {
        auto accepted = co_await listener->accept();
        if (!accepted) co_return;
        auto executor = (*accepted)->executor();
        net::spawn(executor, carry(std::move(*accepted), origin), "port forward");
    }
}

/// Where one port is reached: plain TCP when the endpoint is an address alone, HTTP when it has a
/// path or header fields that requests must carry.
bool takes_any_bytes(const sdk::Route& route) {
    return route.prefix.empty() && route.headers.begin() == route.headers.end() &&
           !route.origin.tls;
}

Awaitable<void> pass_on(http::Exchange& exchange, http::Client& client, sdk::Route route) {
    http::Forwarding forwarding;
    forwarding.origin = route.origin;
    forwarding.target = route.prefix + std::string(exchange.request().target);
    forwarding.edit_request = [route](http::Fields& fields) {
        fields.set("Host", route.host);
        for (const auto& [name, value] : route.headers)
            fields.set(name, value);
    };
    co_await http::forward(exchange, client, std::move(forwarding));
}

/// What listens for one mapping.
struct Forwarded {
    std::shared_ptr<net::Listener> listener;
    std::unique_ptr<http::Client> client;
    std::unique_ptr<http::Server> server;
    std::uint16_t port = 0;
    bool http_only = false;
};

Awaitable<sdk::Result<Forwarded>> open_one(Invocation& invocation, sdk::Connection connection,
                                           PortMapping mapping) {
    sdk::Sandboxes sandboxes(connection);
    auto endpoint =
        co_await sandboxes.endpoint(invocation.arguments().one("SANDBOX_ID"), mapping.remote);
    if (!endpoint) co_return endpoint.error();
    http::Fields headers;
    for (const auto& [name, value] : endpoint->headers)
        headers.set(name, value);
    auto route = connection.transport()->route_to(endpoint->endpoint, headers);
    if (!route) co_return route.error();
    auto listener = net::listen_tcp(invocation.executor(), kLoopback, mapping.local);
    if (!listener) {
        co_return sdk::to_public(
            listener.error().within(std::string(kLoopback) + ":" + std::to_string(mapping.local)));
    }
    Forwarded forwarded;
    forwarded.port = (*listener)->port();
    forwarded.http_only = !takes_any_bytes(*route);
    if (!forwarded.http_only) {
        forwarded.listener = std::move(*listener);
        net::spawn(invocation.executor(), accept_all(forwarded.listener, route->origin),
                   "port forward");
        co_return forwarded;
    }
    forwarded.client = std::make_unique<http::Client>(invocation.executor());
    http::Client* client = forwarded.client.get();
    forwarded.server = std::make_unique<http::Server>(
        invocation.executor(),
        [client, to = *route](http::Exchange& exchange) { return pass_on(exchange, *client, to); });
    forwarded.server->serve(std::move(*listener));
    co_return forwarded;
}

Awaitable<Outcome> port_forward(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    std::vector<PortMapping> mappings;
    for (const auto& text : arguments.rest("PORT")) {
        auto mapping = parse_port_mapping(text);
        if (!mapping) {
            arguments.refuse("PORT", text,
                             "REMOTE, LOCAL:REMOTE or :REMOTE, ports from 1 to 65535");
            break;
        }
        mappings.push_back(*mapping);
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    std::vector<Forwarded> open;
    for (const PortMapping& mapping : mappings) {
        auto forwarded = co_await open_one(invocation, *connection, mapping);
        if (!forwarded) co_return forwarded.error();
        std::string line = "Forwarding 127.0.0.1:" + std::to_string(forwarded->port) + " → " +
                           std::to_string(mapping.remote);
        if (forwarded->http_only) line += " (HTTP and WebSocket only)";
        if (!invocation.terminal().print(line + "\n")) co_return kSuccess;
        open.push_back(std::move(*forwarded));
    }
    net::Event interrupted(invocation.executor());
    Interrupts& interrupts = invocation.interrupts();
    interrupts.handle([&] { interrupted.notify(); });
    ScopeExit released([&] { interrupts.handle({}); });
    co_await interrupted.wait();
    for (auto& forwarded : open) {
        if (forwarded.listener) forwarded.listener->close();
    }
    co_return 128 + interrupts.received();
}

}  // namespace

void add_port_forward_command(CommandTable& table) {
    Command command;
    command.name = "port-forward";
    command.summary = "Reach ports of a sandbox at this machine's loopback.";
    command.details =
        "Listens on 127.0.0.1 until Ctrl-C. Where the server gives the address of the port "
        "itself,\n"
        "any TCP goes through. Where the port is reached through the sandbox's agent or the "
        "server,\n"
        "only HTTP/1.1 and WebSocket go through, and the line that is printed says so; what is no\n"
        "HTTP is refused with 400.";
    command.positionals = {kSandboxId,
                           {"PORT", "REMOTE, LOCAL:REMOTE, or :REMOTE for a free local port.",
                            Positional::Count::many}};
    command.examples = {{"port-forward SANDBOX_ID 8000", "http://127.0.0.1:8000 is its port 8000"},
                        {"port-forward SANDBOX_ID 9000:80 :5000", "another port, and a free one"}};
    command.run = port_forward;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
