#include "http/splice.hpp"

#include "net/task.hpp"

namespace opensandbox::http {
namespace {

constexpr std::size_t kPieceSize = 64 * 1024;

struct Pair {
    Pair(Upgraded x, Upgraded y) : a(std::move(x)), b(std::move(y)), ended(a.stream->executor()) {}
    Upgraded a;
    Upgraded b;
    bool second_ended = false;
    net::Event ended;
};

Awaitable<bool> copy(Upgraded& from, net::Stream& to) {
    if (!from.buffered.empty()) {
        auto written = co_await net::write_all(to, from.buffered);
        if (!written) co_return false;
        std::string().swap(from.buffered);
    }
    std::unique_ptr<char[]> piece;
    while (true) {
        if (from.stream->quiet()) {
            piece.reset();
            co_await from.stream->wait_readable();
        }
        if (!piece) piece = std::make_unique_for_overwrite<char[]>(kPieceSize);
        auto count = co_await from.stream->read_some(std::span(piece.get(), kPieceSize));
        if (!count) co_return false;
        if (*count == 0) co_return true;
        auto written = co_await net::write_all(to, std::string_view(piece.get(), *count));
        if (!written) co_return false;
    }
}

Awaitable<void> copy_direction(Pair& pair, Upgraded& from, Upgraded& to) {
    bool in_order = co_await copy(from, *to.stream);
    if (in_order) {
        to.stream->shutdown_send();
    } else {
        pair.a.stream->close();
        pair.b.stream->close();
    }
}

Awaitable<void> copy_back(std::shared_ptr<Pair> pair) {
    co_await copy_direction(*pair, pair->b, pair->a);
    pair->second_ended = true;
    pair->ended.notify();
}

}  // namespace

Awaitable<void> splice(Upgraded a, Upgraded b) {
    auto pair = std::make_shared<Pair>(std::move(a), std::move(b));
    auto executor = pair->a.stream->executor();
    net::spawn(executor, copy_back(pair), "splice");
    co_await copy_direction(*pair, pair->a, pair->b);
    while (!pair->second_ended)
        co_await pair->ended.wait();
}

}  // namespace opensandbox::http
