#include "agent/ground/publish.hpp"

#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "http/splice.hpp"
#include "net/task.hpp"

#include <memory>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::seconds kPatience{10};

/// One published port.
struct Relay {
    Relay(asio::any_io_executor executor, std::unique_ptr<net::Listener> l, const Publication& to)
        : listener(std::move(l)),
          host(to.host),
          port(to.port),
          most(to.most),
          ended(std::move(executor)) {}
    std::unique_ptr<net::Listener> listener;
    std::string host;
    std::uint16_t port;
    std::size_t most;
    std::size_t connections = 0;
    net::Event ended;
};

Awaitable<void> hand_on(std::shared_ptr<Relay> relay, std::unique_ptr<net::Stream> client) {
    ScopeExit end([relay] {
        --relay->connections;
        relay->ended.notify();
    });
    const bool loopback = relay->host.empty();
    const std::string host = loopback ? "127.0.0.1" : relay->host;
    auto service = co_await net::connect_tcp(host, relay->port, kPatience);
    // Some services listen on IPv6 alone.
    if (!service && loopback) service = co_await net::connect_tcp("::1", relay->port, kPatience);
    if (!service) co_return client->close();
    http::Upgraded near(std::move(client), "");
    http::Upgraded far(std::move(*service), "");
    co_await http::splice(std::move(near), std::move(far));
}

Awaitable<void> accept_all(asio::any_io_executor executor, std::shared_ptr<Relay> relay) {
    while (true) {
        while (relay->connections >= relay->most)
            co_await relay->ended.wait();
        auto client = co_await relay->listener->accept();
        if (!client) {
            log::error("a published port is given up",
                       {{"port", relay->port}, {"error", client.error().message()}});
            co_return;
        }
        ++relay->connections;
        net::spawn(executor, hand_on(relay, std::move(*client)), "published connection");
    }
}

}  // namespace

Status publish(asio::any_io_executor executor, std::vector<Publication> publications) {
    for (Publication& publication : publications) {
        auto listener = net::adopt_listener(executor, std::move(publication.listener));
        if (!listener) return listener.error();
        auto relay = std::make_shared<Relay>(executor, std::move(*listener), publication);
        net::spawn(executor, accept_all(executor, relay), "published port");
    }
    return {};
}

}  // namespace opensandbox::agent
