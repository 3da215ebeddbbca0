#include "runtime/native/network/resolver_service.hpp"

#include "net/task.hpp"
#include "runtime/native/network/resolver_sockets.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"

#include <boost/asio/as_tuple.hpp>
#include <catch2/catch.hpp>
#include <sys/socket.h>

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::test_support;
using namespace opensandbox::runtime::native;
namespace dns = opensandbox::net::dns;
using asio::ip::udp;

namespace {

const udp::endpoint any(asio::ip::address_v4::loopback(), 0);

std::string query_for(std::string_view label, std::uint8_t type, std::uint16_t id) {
    std::string out;
    out += static_cast<char>(id >> 8);
    out += static_cast<char>(id & 0xff);
    out += std::string("\1\0\0\1\0\0\0\0\0\0", 10);
    out += static_cast<char>(label.size());
    out += label;
    out += std::string("\0\0", 2);
    out += static_cast<char>(type);
    out += std::string("\0\1", 2);
    return out;
}

/// A resolver for 127.0.0.0/8 with a server behind it that is the test's.
struct Fixture {
    explicit Fixture(ResolverLimits limits = ResolverLimits())
        : upstream(loop.executor(), any), client(loop.executor(), any) {
        write_settings("nameserver 127.0.0.1\nsearch lan\n");
        // The range must not hold the server, or it would be taken for the gateway's own.
        service = std::make_shared<ResolverService>(
            loop.executor(), net::Ipv4Range::parse("127.16.0.0/16").value(),
            scratch.path / "resolv.conf", upstream.local_endpoint().port(), limits);
        auto sockets = open_resolver_sockets(net::Ipv4Address({127, 0, 0, 1}));
        REQUIRE(sockets);
        port = sockets->port;
        REQUIRE(service->start(std::move(sockets->udp), std::move(sockets->tcp)));
    }
    ~Fixture() { service->stop(); }

    void write_settings(const std::string& text) const {
        std::ofstream(scratch.path / "resolv.conf") << text;
    }

    /// A client at one of the range's addresses.
    udp::socket client_at(const std::string& address) {
        return udp::socket(loop.executor(), udp::endpoint(asio::ip::make_address_v4(address), 0));
    }

    Awaitable<void> send(udp::socket& from, std::string message) {
        const udp::endpoint there(asio::ip::address_v4::loopback(), port);
        co_await from.async_send_to(asio::buffer(message), there, kAsTupleAwaitable);
    }

    static Awaitable<std::string> receive(udp::socket& at) {
        std::string buffer(4096, '\0');
        auto [failed, size] = co_await at.async_receive(asio::buffer(buffer), kAsTupleAwaitable);
        buffer.resize(failed ? 0 : size);
        co_return buffer;
    }

    /// Answers the next query upstream with one address.
    Awaitable<dns::Query> answer_upstream(std::string address) {
        std::string buffer(4096, '\0');
        udp::endpoint from;
        auto [failed, size] =
            co_await upstream.async_receive_from(asio::buffer(buffer), from, kAsTupleAwaitable);
        buffer.resize(failed ? 0 : size);
        auto query = dns::parse_query(buffer);
        if (!query) co_return dns::Query();
        const std::string reply = dns::make_address_reply(
            buffer, *query, {asio::ip::make_address(address)}, 60, dns::kPlainUdp);
        co_await upstream.async_send_to(asio::buffer(reply), from, kAsTupleAwaitable);
        co_return *query;
    }

    Loop loop;
    ScratchDirectory scratch;
    udp::socket upstream;
    udp::socket client;
    std::uint16_t port = 0;
    std::shared_ptr<ResolverService> service;
};

}  // namespace

TEST_CASE(
    "a query goes to the host's server under another id, its answer comes back under its own") {
    Fixture resolver;
    auto client = resolver.client_at("127.16.0.2");
    resolver.loop.run([&]() -> Awaitable<void> {
        co_await resolver.send(client, query_for("web", dns::kTypeA, 0x1234));
        auto asked = co_await resolver.answer_upstream("192.0.2.9");
        CHECK(asked.question.name == "web");
        const std::string text = co_await Fixture::receive(client);
        auto reply = dns::parse_reply(text);
        REQUIRE(reply.has_value());
        CHECK(reply->id == 0x1234);
        REQUIRE(reply->answers.size() == 1);
        CHECK(reply->answers[0].address->to_string() == "192.0.2.9");
    });
}

TEST_CASE("names of a network are answered here, to its members only") {
    Fixture resolver;
    auto member = resolver.client_at("127.16.0.2");
    auto stranger = resolver.client_at("127.16.0.3");
    resolver.service->names().set(asio::ip::make_address_v4("127.16.0.2"), "lab", {"alice"});
    resolver.service->names().set(asio::ip::make_address_v4("127.16.0.7"), "lab", {"web"});
    resolver.loop.run([&]() -> Awaitable<void> {
        co_await resolver.send(member, query_for("web", dns::kTypeA, 1));
        const std::string first = co_await Fixture::receive(member);
        auto reply = dns::parse_reply(first);
        REQUIRE(reply.has_value());
        REQUIRE(reply->answers.size() == 1);
        CHECK(reply->answers[0].address->to_string() == "127.16.0.7");
        // There is such a name, but no such address.
        co_await resolver.send(member, query_for("web", dns::kTypeAaaa, 2));
        const std::string second = co_await Fixture::receive(member);
        reply = dns::parse_reply(second);
        REQUIRE(reply.has_value());
        CHECK(reply->code == dns::ResponseCode::no_error);
        CHECK(reply->answers.empty());
        co_await resolver.send(stranger, query_for("web", dns::kTypeA, 3));
        auto asked = co_await resolver.answer_upstream("192.0.2.1");
        CHECK(asked.question.name == "web");
        const std::string third = co_await Fixture::receive(stranger);
        CHECK(dns::parse_reply(third)->answers[0].address->to_string() == "192.0.2.1");
    });
}

TEST_CASE("a server that does not answer is given up, and the client told") {
    ResolverLimits limits;
    limits.patience = std::chrono::milliseconds(20);
    limits.tries = 2;
    Fixture resolver(limits);
    auto client = resolver.client_at("127.16.0.2");
    resolver.loop.run([&]() -> Awaitable<void> {
        co_await resolver.send(client, query_for("web", dns::kTypeA, 5));
        const std::string text = co_await Fixture::receive(client);
        auto reply = dns::parse_reply(text);
        REQUIRE(reply.has_value());
        CHECK(reply->code == dns::ResponseCode::server_failure);
        CHECK(reply->id == 5);
    });
}

TEST_CASE("queries from outside of the range, and what is none, get no answer") {
    Fixture resolver;
    auto client = resolver.client_at("127.16.0.2");
    resolver.service->names().set(asio::ip::make_address_v4("127.16.0.2"), "lab", {"me"});
    resolver.loop.run([&]() -> Awaitable<void> {
        co_await resolver.send(resolver.client, query_for("me", dns::kTypeA, 1));
        co_await resolver.send(client, "no query");
        co_await resolver.send(client, query_for("me", dns::kTypeA, 2));
        // The only answer is the one to the last.
        const std::string text = co_await Fixture::receive(client);
        CHECK(dns::parse_reply(text)->id == 2);
        CHECK(resolver.client.available() == 0);
    });
}

TEST_CASE("one sandbox cannot use up the queries of all") {
    ResolverLimits limits;
    limits.queries_of_one = 2;
    Fixture resolver(limits);
    auto greedy = resolver.client_at("127.16.0.2");
    auto other = resolver.client_at("127.16.0.3");
    resolver.loop.run([&]() -> Awaitable<void> {
        for (std::uint16_t id = 1; id <= 5; ++id)
            co_await resolver.send(greedy, query_for("slow", dns::kTypeA, id));
        co_await resolver.send(other, query_for("web", dns::kTypeA, 9));
        // Two of the greedy one's and the other's arrive upstream.
        std::map<std::string, int> asked;
        for (int i = 0; i < 3; ++i) {
            auto query = co_await resolver.answer_upstream("192.0.2.1");
            ++asked[query.question.name];
        }
        CHECK(asked["slow"] == 2);
        CHECK(asked["web"] == 1);
    });
}

TEST_CASE("TCP carries queries one after the other, and local names") {
    Fixture resolver;
    resolver.service->names().set(asio::ip::make_address_v4("127.16.0.2"), "lab", {"me"});
    resolver.loop.run([&]() -> Awaitable<void> {
        asio::ip::tcp::socket client(resolver.loop.executor());
        client.open(asio::ip::tcp::v4());
        client.bind({asio::ip::make_address_v4("127.16.0.2"), 0});
        const asio::ip::tcp::endpoint there(asio::ip::address_v4::loopback(), resolver.port);
        co_await client.async_connect(there, kAsTupleAwaitable);
        for (std::uint16_t id = 1; id <= 2; ++id) {
            const std::string query = query_for("me", dns::kTypeA, id);
            std::string bytes{'\0', static_cast<char>(query.size())};
            bytes += query;
            co_await asio::async_write(client, asio::buffer(bytes), kAsTupleAwaitable);
            std::string head(2, '\0');
            co_await asio::async_read(client, asio::buffer(head), kAsTupleAwaitable);
            std::string body(static_cast<unsigned char>(head[1]), '\0');
            co_await asio::async_read(client, asio::buffer(body), kAsTupleAwaitable);
            auto reply = dns::parse_reply(body);
            REQUIRE(reply.has_value());
            CHECK(reply->id == id);
            CHECK(reply->answers.size() == 1);
        }
    });
}
