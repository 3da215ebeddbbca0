#pragma once

#include "egress/role/sidecar.hpp"
#include "support/http_fixture.hpp"
#include "support/scratch_directory.hpp"
#include "unit/egress/guard/reply_contract.hpp"
#include "unit/egress/rules/sidecar_topology.hpp"

#include <boost/asio/ip/udp.hpp>
#include <boost/asio/redirect_error.hpp>

namespace opensandbox::egress::test {

inline constexpr std::uint16_t kPort = 9;
inline constexpr std::uint16_t kResolver = 5300;

/// A sidecar in the box of a topology, whose event loop runs where its threads are; outside
/// something listens at 192.0.2.2, port kPort.
struct SidecarWorld {
    [[nodiscard]] SidecarSettings settings() const {
        SidecarSettings made;
        made.options.nft = true;
        made.options.http.address = boost::asio::ip::make_address("127.0.0.1");
        made.options.http.port = 0;
        made.options.dns_upstreams.emplace_back(boost::asio::ip::make_address("127.0.0.1"),
                                                kResolver);
        made.options.policy_file = directory.path / "policy.json";
        made.overlay_directory = directory.path;
        made.authority = {directory.path / "ca" / "cert.pem", directory.path / "ca" / "key.pem"};
        made.published_authority = directory.path / "shared" / "ca.pem";
        if (adjust) adjust(made);
        return made;
    }

    /// Runs `body` beside a sidecar that has started, in the sandbox's namespace.
    void with_sidecar(const std::function<Awaitable<void>(Sidecar&)>& body) const {
        topology.box.run([&] {
            test_support::Loop loop;
            Sidecar sidecar(loop.executor(), settings());
            loop.run([&]() -> Awaitable<void> {
                const Status started = co_await sidecar.start();
                CHECK(started);
                if (started) co_await body(sidecar);
                co_await sidecar.stop(std::chrono::seconds(1));
            });
        });
    }

    [[nodiscard]] int reach() const {
        return opensandbox::test::connect_to(topology.box, "192.0.2.2", kPort);
    }

    std::function<void(SidecarSettings&)> adjust;
    opensandbox::test::SidecarTopology topology;
    opensandbox::test::Listener listener{topology.outside, "192.0.2.2", kPort};
    test_support::ScratchDirectory directory;
};

/// The whole answer of a sidecar's API, which must be as specs/egress.yaml has it.
inline Awaitable<std::string> ask(std::uint16_t port, std::string method, std::string target,
                                  std::string body = "") {
    std::string bytes = method + " " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
    bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    std::string answer = co_await http::test::talk(port, bytes);
    CHECK(breach_of_contract(method, target, answer) == "");
    co_return answer;
}

/// The response code to a query for NAME.test (four letters) at a server that is not there.
inline Awaitable<int> query(std::string name) {
    using boost::asio::ip::udp;
    const std::string head("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04", 13);
    const std::string message = head + name + std::string("\x04test\x00\x00\x01\x00\x01", 10);
    udp::socket socket(co_await asio::this_coro::executor, udp::v4());
    const udp::endpoint server(boost::asio::ip::make_address("192.0.2.53"), 53);
    co_await socket.async_send_to(asio::buffer(message), server, asio::use_awaitable);
    std::string answer(1500, '\0');
    net::Deadline deadline(socket.get_executor(), std::chrono::seconds(5),
                           [&] { socket.cancel(); });
    const std::size_t size =
        co_await socket.async_receive(asio::buffer(answer), asio::use_awaitable);
    co_return size < 4 ? -1 : answer[3] & 0x0f;
}

/// A resolver of the sandbox's namespace for whom every name stands for 192.0.2.2.
inline Awaitable<void> resolve_all(std::shared_ptr<boost::asio::ip::udp::socket> socket) {
    const std::string record("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x02",
                             16);
    while (true) {
        std::string message(1500, '\0');
        boost::asio::ip::udp::endpoint peer;
        boost::system::error_code failed;
        const std::size_t size = co_await socket->async_receive_from(
            asio::buffer(message), peer, asio::redirect_error(asio::use_awaitable, failed));
        if (failed) co_return;
        std::size_t end = 12;
        while (end < size && message[end] != 0)
            end += static_cast<unsigned char>(message[end]) + 1U;
        message.resize(std::min(size, end + 5));
        message[2] = static_cast<char>(0x81);
        message[3] = static_cast<char>(0x80);
        const bool address = message[message.size() - 3] == 1;
        message.replace(
            6, 6,
            std::string(address ? "\x00\x01\x00\x00\x00\x00" : "\x00\x00\x00\x00\x00\x00", 6));
        if (address) message += record;
        co_await socket->async_send_to(asio::buffer(message), peer, asio::use_awaitable);
    }
}

/// That resolver, running until it is closed.
inline Awaitable<std::shared_ptr<boost::asio::ip::udp::socket>> start_resolver() {
    using boost::asio::ip::udp;
    const udp::endpoint local(boost::asio::ip::make_address("127.0.0.1"), kResolver);
    auto resolver = std::make_shared<udp::socket>(co_await asio::this_coro::executor, local);
    net::spawn(resolver->get_executor(), resolve_all(resolver), "resolver");
    co_return resolver;
}

}  // namespace opensandbox::egress::test
