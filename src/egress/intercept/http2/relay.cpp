#include "egress/intercept/http2/relay.hpp"

#include "egress/intercept/http2/exchange.hpp"
#include "net/task.hpp"

#include <boost/asio/this_coro.hpp>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kRead = 16 * 1024;
/// Several records in one go.
constexpr std::size_t kWrite = 64 * 1024;
/// Frames that wait for a peer that does not read; more are not provoked by reading on.
constexpr std::size_t kMaxQueued = 512;
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kDrainTime{2};

/// Both connections and the exchange between them. Kept by every task that uses it.
struct Relay : std::enable_shared_from_this<Relay> {
    Relay(RequestGuard& guard, const RelayLimits& l, IdleWatch& watch, ClientLoad& c,
          std::unique_ptr<net::Stream> s, ConnectUpstream connect_with)
        : limits(l),
          client(std::move(s)),
          connect(std::move(connect_with)),
          client_wake(client->executor()),
          upstream_wake(client->executor()),
          ended(client->executor()),
          exchange(guard, l, c, signals()),
          lease(watch, guard.site().watched(), [this] { close(); }),
          judge(guard) {}

    Http2Exchange::Signals signals() {
        Http2Exchange::Signals made;
        made.wake = [this] {
            client_wake.notify();
            upstream_wake.notify();
        };
        made.want_upstream = [this](std::string host) {
            start(open_upstream(shared_from_this(), std::move(host)));
        };
        return made;
    }

    void start(Awaitable<void> task) {
        ++tasks;
        net::spawn(client->executor(), std::move(task), "egress http2");
    }
    void task_over() {
        --tasks;
        ended.notify();
    }
    void close() {
        closed = true;
        client->close();
        if (upstream) upstream->close();
        client_wake.notify();
        upstream_wake.notify();
    }
    /// Our last words are said. What the client still sends is read for a while: closing over
    /// unread bytes would take them back.
    void drain() {
        draining = true;
        client->shutdown_send();
        if (upstream) upstream->close();
        lease.due_in(kDrainTime);
    }
    void note_activity() {
        if (draining) return;
        if (exchange.idle()) {
            lease.due_in(limits.idle_timeout);
        } else {
            lease.clear();
        }
    }

    static Awaitable<void> read(std::shared_ptr<Relay> self, bool from_client);
    static Awaitable<void> write(std::shared_ptr<Relay> self, bool to_client);
    static Awaitable<void> open_upstream(std::shared_ptr<Relay> self, std::string host);
    Awaitable<void> make_room(Http2Session& session);

    const RelayLimits& limits;
    std::unique_ptr<net::Stream> client;
    std::unique_ptr<net::Stream> upstream;
    ConnectUpstream connect;
    net::Event client_wake;
    net::Event upstream_wake;
    net::Event ended;
    Http2Exchange exchange;
    IdleWatch::Lease lease;
    RequestGuard& judge;
    int tasks = 0;
    bool closed = false;
    bool draining = false;
};

/// Waits while the peer does not take what it provokes. Bodies do not count: their bound is the
/// windows, for the frames that open these must be read whatever is held.
Awaitable<void> Relay::make_room(Http2Session& session) {
    while (!closed && session.queued() > kMaxQueued)
        co_await net::sleep_for(kPause);
}

Awaitable<void> Relay::read(std::shared_ptr<Relay> self, bool from_client) {
    net::Stream& stream = from_client ? *self->client : *self->upstream;
    Http2Session& session = from_client ? self->exchange.client() : *self->exchange.upstream();
    bool sound = true;
    while (sound && !self->closed) {
        co_await self->make_room(session);
        co_await stream.wait_readable();
        if (self->closed) break;
        // Only while there is something to read: an idle connection holds none.
        auto buffer = std::make_unique_for_overwrite<char[]>(kRead);
        auto count = co_await stream.read_some(std::span<char>(buffer.get(), kRead));
        if (!count || *count == 0) break;
        if (self->draining) continue;
        sound = session.receive(std::string_view(buffer.get(), *count));
        if (!self->judge.site().tls) self->lease.name(self->judge.host_name());
        self->client_wake.notify();
        self->upstream_wake.notify();
        self->note_activity();
    }
    if (from_client) {
        self->close();
    } else if (!self->closed) {
        stream.close();
        self->exchange.lose_upstream();
    }
    self->task_over();
}

Awaitable<void> Relay::write(std::shared_ptr<Relay> self, bool to_client) {
    net::Stream& stream = to_client ? *self->client : *self->upstream;
    Http2Session& session = to_client ? self->exchange.client() : *self->exchange.upstream();
    net::Event& wake = to_client ? self->client_wake : self->upstream_wake;
    std::string out;
    bool over = false;
    while (!self->closed) {
        out.clear();
        if (!session.collect(out, kWrite)) break;
        if (!out.empty()) {
            auto written = co_await net::write_all(stream, out);
            if (!written) break;
            continue;
        }
        self->note_activity();
        over = session.over() || (to_client && self->exchange.finished());
        if (over) break;
        std::string().swap(out);
        co_await wake.wait();
    }
    if (to_client && over) {
        self->drain();
    } else if (to_client) {
        self->close();
    } else {
        stream.close();
    }
    self->task_over();
}

Awaitable<void> Relay::open_upstream(std::shared_ptr<Relay> self, std::string host) {
    auto connected = co_await self->connect(std::move(host));
    if (!connected) {
        self->exchange.fail_upstream(connected.error().message());
    } else if (!self->closed) {
        self->upstream = std::move(*connected);
        if (self->exchange.open_upstream()) {
            self->start(read(self, false));
            self->start(write(self, false));
        } else {
            self->close();
        }
    }
    self->task_over();
}

}  // namespace

Awaitable<void> relay_http2(RequestGuard& guard, RelayLimits& limits, IdleWatch& watch,
                            ClientLoad& load, std::unique_ptr<net::Stream> client,
                            std::string received, ConnectUpstream connect) {
    auto relay =
        std::make_shared<Relay>(guard, limits, watch, load, std::move(client), std::move(connect));
    if (!relay->exchange.open_client()) co_return;
    relay->note_activity();
    bool sound = received.empty() || relay->exchange.client().receive(received);
    std::string().swap(received);
    if (sound) relay->start(Relay::read(relay, true));
    relay->start(Relay::write(relay, true));
    while (relay->tasks > 0)
        co_await relay->ended.wait();
}

}  // namespace opensandbox::egress
