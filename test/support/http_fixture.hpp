#pragma once

#include "http/server.hpp"
#include "net/stream.hpp"
#include "support/event_loop.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace opensandbox::http::test {

using test_support::Loop;

/// A server on a loopback port.
class TestServer {
  public:
    TestServer(Loop& loop, Handler handler, ServerOptions options = {})
        : server(loop.executor(), std::move(handler), options) {
        auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
        REQUIRE(listener.has_value());
        port = (*listener)->port();
        server.serve(std::move(*listener));
    }

    Server server;
    std::uint16_t port = 0;
};

/// A server that says what a test tells it to: every connection is given to `script`, with its
/// number from 1, and closed when that ends.
class ScriptedServer {
  public:
    using Script = std::function<Awaitable<void>(net::Stream&, int)>;

    ScriptedServer(Loop& loop, Script script) : script_(std::move(script)) {
        auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
        REQUIRE(listener.has_value());
        port = (*listener)->port();
        listener_ = std::move(*listener);
        net::spawn(loop.executor(), accept(loop.executor()), "scripted server");
    }

    std::uint16_t port = 0;
    int connections = 0;

  private:
    Awaitable<void> accept(asio::any_io_executor executor) {
        while (true) {
            auto stream = co_await listener_->accept();
            if (!stream) co_return;
            net::spawn(executor, run(std::move(*stream), ++connections), "script");
        }
    }
    Awaitable<void> run(std::unique_ptr<net::Stream> stream, int number) {
        co_await script_(*stream, number);
    }

    Script script_;
    std::unique_ptr<net::Listener> listener_;
};

/// A raw connection to a port.
inline Awaitable<std::unique_ptr<net::Stream>> dial(std::uint16_t port) {
    auto stream = co_await net::connect_tcp("127.0.0.1", port, std::chrono::seconds(5));
    if (!stream) throw std::runtime_error(stream.error().message());
    co_return std::move(*stream);
}

inline Awaitable<void> send(net::Stream& stream, std::string_view bytes) {
    auto written = co_await net::write_all(stream, bytes);
    if (!written) throw std::runtime_error(written.error().message());
}

/// Reads until the peer ends its side or the connection breaks.
inline Awaitable<std::string> receive_all(net::Stream& stream) {
    std::string all;
    std::string piece(65536, '\0');
    while (true) {
        auto count = co_await stream.read_some(piece);
        if (!count || *count == 0) co_return all;
        all.append(piece, 0, *count);
    }
}

/// Reads until what was received ends with `end` (or the peer ends).
inline Awaitable<std::string> receive_until(net::Stream& stream, std::string_view end) {
    std::string all;
    std::string piece(65536, '\0');
    while (!all.ends_with(end)) {
        auto count = co_await stream.read_some(piece);
        if (!count || *count == 0) co_return all;
        all.append(piece, 0, *count);
    }
    co_return all;
}

/// Sends bytes over a new connection, ends our side if told so, and returns all that comes back.
inline Awaitable<std::string> talk(std::uint16_t port, std::string_view bytes) {
    auto stream = co_await dial(port);
    co_await send(*stream, bytes);
    co_return co_await receive_all(*stream);
}

inline std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

}  // namespace opensandbox::http::test
