#include "net/stream.hpp"

#include "support/event_loop.hpp"

#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <numeric>

using namespace opensandbox;
using namespace std::chrono_literals;
using test_support::Loop;

namespace {

/// Two connected streams of this process.
struct StreamPair {
    explicit StreamPair(const asio::any_io_executor& executor) {
        int fds[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        auto first = net::adopt_stream(executor, UniqueFd(fds[0]));
        auto second = net::adopt_stream(executor, UniqueFd(fds[1]));
        REQUIRE(first.has_value());
        REQUIRE(second.has_value());
        a = std::move(*first);
        b = std::move(*second);
    }
    std::unique_ptr<net::Stream> a;
    std::unique_ptr<net::Stream> b;
};

struct ReadOutcome {
    explicit ReadOutcome(const asio::any_io_executor& executor) : ended(executor) {}
    net::Event ended;
    bool failed = false;
    ErrorCode code = ErrorCode::internal;
    std::string bytes;
};

Awaitable<void> read_once(net::Stream& stream, ReadOutcome& outcome) {
    std::string buffer(64, '\0');
    auto count = co_await stream.read_some(buffer);
    outcome.failed = !count;
    if (count) outcome.bytes.assign(buffer, 0, *count);
    if (!count) outcome.code = count.error().code();
    outcome.ended.notify();
}

Awaitable<void> write_and_end(net::Stream& stream, const std::string& bytes) {
    co_await net::write_all(stream, bytes);
    stream.shutdown_send();
}

}  // namespace

TEST_CASE("pieces are written in order, empty ones included", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        std::vector<std::string_view> pieces{"one ", "", "two ", "three", ""};
        auto written = co_await pair.a->write_all(pieces);
        REQUIRE(written.has_value());
        std::string buffer(64, '\0');
        auto count = co_await pair.b->read_some(buffer);
        REQUIRE(count.has_value());
        CHECK(buffer.substr(0, *count) == "one two three");
    });
}

TEST_CASE("a write larger than the kernel's buffers arrives whole", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    std::string big(5'000'000, '\0');
    std::iota(big.begin(), big.end(), '\0');
    loop.run([&]() -> Awaitable<void> {
        net::spawn(loop.executor(), write_and_end(*pair.a, big), "writer");
        std::string received;
        std::string buffer(70'001, '\0');
        while (true) {
            auto count = co_await pair.b->read_some(buffer);
            REQUIRE(count.has_value());
            if (*count == 0) break;
            received.append(buffer, 0, *count);
        }
        CHECK(received == big);
    });
}

TEST_CASE("more pieces than one system call takes arrive in order", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    std::vector<std::string> texts;
    std::string expected;
    for (int i = 0; i < 200; ++i) {
        texts.push_back(std::to_string(i) + ",");
        expected += texts.back();
    }
    std::vector<std::string_view> pieces(texts.begin(), texts.end());
    loop.run([&]() -> Awaitable<void> {
        auto written = co_await pair.a->write_all(pieces);
        REQUIRE(written.has_value());
        std::string buffer(4096, '\0');
        auto count = co_await pair.b->read_some(buffer);
        REQUIRE(count.has_value());
        CHECK(buffer.substr(0, *count) == expected);
    });
}

TEST_CASE("closing a stream ends its read as cancelled", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ReadOutcome outcome(loop.executor());
        net::spawn(loop.executor(), read_once(*pair.a, outcome), "reader");
        co_await net::sleep_for(1ms);
        pair.a->close();
        bool ended = co_await outcome.ended.wait_for(10s);
        REQUIRE(ended);
        CHECK(outcome.failed);
        CHECK(outcome.code == ErrorCode::cancelled);
    });
}

TEST_CASE("destroying a stream ends its read as cancelled", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ReadOutcome outcome(loop.executor());
        net::spawn(loop.executor(), read_once(*pair.a, outcome), "reader");
        co_await net::sleep_for(1ms);
        pair.a.reset();
        bool ended = co_await outcome.ended.wait_for(10s);
        REQUIRE(ended);
        CHECK(outcome.code == ErrorCode::cancelled);
    });
}

TEST_CASE("a cancelled read loses nothing and the stream goes on", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ReadOutcome first(loop.executor());
        net::spawn(loop.executor(), read_once(*pair.a, first), "reader");
        co_await net::sleep_for(1ms);
        pair.a->cancel_read();
        bool ended = co_await first.ended.wait_for(10s);
        REQUIRE(ended);
        CHECK(first.code == ErrorCode::cancelled);
        auto written = co_await net::write_all(*pair.b, "kept");
        REQUIRE(written.has_value());
        ReadOutcome second(loop.executor());
        co_await read_once(*pair.a, second);
        CHECK(second.bytes == "kept");
    });
}

TEST_CASE("cancelling a read does not disturb a write that waits", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    std::string big(3'000'000, 'x');
    loop.run([&]() -> Awaitable<void> {
        net::spawn(loop.executor(), write_and_end(*pair.a, big), "writer");
        co_await net::sleep_for(1ms);
        pair.a->cancel_read();
        std::size_t total = 0;
        std::string buffer(65536, '\0');
        while (true) {
            auto count = co_await pair.b->read_some(buffer);
            REQUIRE(count.has_value());
            if (*count == 0) break;
            total += *count;
        }
        CHECK(total == big.size());
    });
}

TEST_CASE("a stream is quiet until bytes or the end arrive", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        CHECK(pair.a->quiet());
        co_await net::write_all(*pair.b, "x");
        co_await pair.a->wait_readable();
        CHECK_FALSE(pair.a->quiet());
        std::string buffer(8, '\0');
        auto count = co_await pair.a->read_some(buffer);
        CHECK(*count == 1);
        CHECK(pair.a->quiet());
        pair.b->shutdown_send();
        co_await pair.a->wait_readable();
        CHECK_FALSE(pair.a->quiet());
        auto end = co_await pair.a->read_some(buffer);
        REQUIRE(end.has_value());
        CHECK(*end == 0);
    });
}

TEST_CASE("writing to a peer that went away fails without a signal", "[net][stream]") {
    Loop loop;
    StreamPair pair(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        pair.b.reset();
        auto written = co_await net::write_all(*pair.a, "lost");
        CHECK_FALSE(written.has_value());
    });
}

TEST_CASE("a connection over loopback carries bytes and names its peer", "[net][stream]") {
    Loop loop;
    auto host = GENERATE("127.0.0.1", "::1");
    auto listener = net::listen_tcp(loop.executor(), host, 0);
    if (!listener && std::string(host) == "::1") return;  // a machine without IPv6
    REQUIRE(listener.has_value());
    loop.run([&]() -> Awaitable<void> {
        auto client = co_await net::connect_tcp(host, (*listener)->port(), 5s);
        REQUIRE(client.has_value());
        auto server = co_await (*listener)->accept();
        REQUIRE(server.has_value());
        CHECK((*server)->peer_address() == host);
        co_await net::write_all(**client, "hello");
        ReadOutcome outcome(loop.executor());
        co_await read_once(**server, outcome);
        CHECK(outcome.bytes == "hello");
    });
}

TEST_CASE("names are resolved", "[net][connect]") {
    Loop loop;
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    loop.run([&]() -> Awaitable<void> {
        auto client = co_await net::connect_tcp("localhost", (*listener)->port(), 5s);
        CHECK(client.has_value());
    });
}

TEST_CASE("a refused connection is unavailable and says where to", "[net][connect]") {
    Loop loop;
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    std::uint16_t port = (*listener)->port();
    listener->reset();
    loop.run([&]() -> Awaitable<void> {
        auto client = co_await net::connect_tcp("127.0.0.1", port, 5s);
        REQUIRE_FALSE(client.has_value());
        CHECK(client.error().code() == ErrorCode::unavailable);
        CHECK_THAT(client.error().message(),
                   Catch::Matchers::Contains("127.0.0.1:" + std::to_string(port)));
    });
}

TEST_CASE("an unknown Unix socket is unavailable, a path too long as well", "[net][connect]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto missing = co_await net::connect_unix("/nonexistent/socket");
        REQUIRE_FALSE(missing.has_value());
        CHECK(missing.error().code() == ErrorCode::unavailable);
        auto too_long = co_await net::connect_unix(std::string(200, 'x'));
        REQUIRE_FALSE(too_long.has_value());
        CHECK(too_long.error().code() == ErrorCode::unavailable);
    });
}

TEST_CASE("a listener on a taken port fails, on a name as well", "[net][listener]") {
    Loop loop;
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    auto second = net::listen_tcp(loop.executor(), "127.0.0.1", (*listener)->port());
    CHECK_FALSE(second.has_value());
    auto name = net::listen_tcp(loop.executor(), "localhost", 0);
    REQUIRE_FALSE(name.has_value());
    CHECK(name.error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("closing a listener ends accept as cancelled", "[net][listener]") {
    Loop loop;
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    loop.run([&]() -> Awaitable<void> {
        auto closer = [](net::Listener& l) -> Awaitable<void> {
            co_await net::sleep_for(1ms);
            l.close();
        };
        net::spawn(loop.executor(), closer(**listener), "closer");
        auto stream = co_await (*listener)->accept();
        REQUIRE_FALSE(stream.has_value());
        CHECK(stream.error().code() == ErrorCode::cancelled);
    });
}

TEST_CASE("a listening Unix socket made elsewhere is taken over", "[net][listener]") {
    Loop loop;
    auto path = std::filesystem::temp_directory_path() /
                ("opensandbox-listener-" + std::to_string(::getpid()));
    std::filesystem::remove(path);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    struct Remove {
        std::filesystem::path path;
        ~Remove() { std::filesystem::remove(path); }
    } remove{path};
    REQUIRE(::listen(fd.get(), 8) == 0);
    auto listener = net::adopt_listener(loop.executor(), std::move(fd));
    REQUIRE(listener.has_value());
    CHECK((*listener)->port() == 0);
    loop.run([&]() -> Awaitable<void> {
        auto client = co_await net::connect_unix(path.string());
        REQUIRE(client.has_value());
        auto server = co_await (*listener)->accept();
        REQUIRE(server.has_value());
        CHECK((*server)->peer_address().empty());
        co_await net::write_all(**client, "over");
        ReadOutcome outcome(loop.executor());
        co_await read_once(**server, outcome);
        CHECK(outcome.bytes == "over");
    });
}

TEST_CASE("what is no stream socket is not taken over", "[net][stream]") {
    Loop loop;
    UniqueFd datagram(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    auto stream = net::adopt_stream(loop.executor(), std::move(datagram));
    CHECK_FALSE(stream.has_value());
    auto listener = net::adopt_listener(loop.executor(), UniqueFd());
    CHECK_FALSE(listener.has_value());
}
