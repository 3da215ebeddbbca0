#include "egress/intercept/pass_through.hpp"

#include "egress/intercept/http1/exchange.hpp"
#include "net/task.hpp"

namespace opensandbox::egress {
namespace {

struct Pair {
    Pair(IdleWatch& watch, WatchedTarget target, std::chrono::milliseconds i,
         std::unique_ptr<net::Stream> c, std::unique_ptr<net::Stream> u)
        : idle(i),
          client(std::move(c)),
          upstream(std::move(u)),
          ended(client.stream->executor()),
          lease(watch, std::move(target), [this] { close(); }) {}

    void close() {
        client.stream->close();
        upstream.stream->close();
    }

    std::chrono::milliseconds idle;
    http::Input client;
    http::Input upstream;
    net::Event ended;
    bool answers_ended = false;
    IdleWatch::Lease lease;
};

Awaitable<void> copy_direction(Pair& pair, http::Input& from, http::Input& to) {
    bool in_order = co_await http1::copy_bytes(from, *to.stream);
    if (in_order) {
        to.stream->shutdown_send();
        pair.lease.due_in(pair.idle);
    } else {
        pair.close();
    }
}

Awaitable<void> copy_answers(std::shared_ptr<Pair> pair) {
    co_await copy_direction(*pair, pair->upstream, pair->client);
    pair->answers_ended = true;
    pair->ended.notify();
}

}  // namespace

Awaitable<void> pass_through(IdleWatch& watch, WatchedTarget target, std::chrono::milliseconds idle,
                             std::unique_ptr<net::Stream> client, std::string received,
                             std::unique_ptr<net::Stream> upstream) {
    auto pair = std::make_shared<Pair>(watch, std::move(target), idle, std::move(client),
                                       std::move(upstream));
    auto sent = co_await net::write_all(*pair->upstream.stream, received);
    if (!sent) co_return;
    std::string().swap(received);
    net::spawn(pair->client.stream->executor(), copy_answers(pair), "egress pass-through");
    co_await copy_direction(*pair, pair->client, pair->upstream);
    while (!pair->answers_ended)
        co_await pair->ended.wait();
}

}  // namespace opensandbox::egress
