#pragma once

#include "egress/role/enforcer.hpp"
#include "support/http_fixture.hpp"
#include "support/scratch_directory.hpp"
#include "unit/egress/guard/reply_contract.hpp"
#include "unit/egress/role/name_server.hpp"
#include "unit/egress/rules/host_topology.hpp"

#include <functional>

namespace opensandbox::test {

using Catch::Contains;

/// The host of EgressTopology with an enforcer on it, and outside a resolver and a service on both
/// of its addresses.
struct HostWorld {
    static constexpr std::uint16_t kService = 9;
    static constexpr std::uint16_t kResolver = 5300;

    HostWorld() { net.add_outside("198.51.100.7"); }

    [[nodiscard]] egress::EnforcerSettings settings() const {
        egress::EnforcerSettings made(net.options());
        made.state_directory = directory.path / "state";
        made.overlay_directory = directory.path / "overlay";
        made.dns.upstream.servers.emplace_back(
            boost::asio::ip::udp::endpoint(ip("192.0.2.2"), kResolver));
        made.stop_grace = std::chrono::milliseconds(500);
        if (adjust) adjust(made);
        return made;
    }

    /// Runs `body` beside an enforcer that has started, on the host.
    void with_enforcer(const std::function<Awaitable<void>(egress::Enforcer&)>& body) {
        net.host.run([&] {
            test_support::Loop loop;
            NameServer server(loop.executor(), net.outside, "192.0.2.2", kResolver, names);
            egress::EnforcerSockets given = sockets();
            if (drop_privileges) drop_privileges();
            egress::Enforcer enforcer(loop.executor(), settings(), std::move(given));
            loop.run([&]() -> Awaitable<void> {
                const Status started = co_await enforcer.start();
                CHECK(started);
                if (started) co_await body(enforcer);
                co_await enforcer.stop();
            });
        });
    }

    [[nodiscard]] static egress::GuardedSpec spec(const EgressSandbox& sandbox,
                                                  const std::string& policy = {}) {
        egress::GuardedSpec made;
        made.id = "box-" + sandbox.link;
        made.link = sandbox.link;
        made.addresses = {ip(sandbox.v4), ip(sandbox.v6)};
        made.policy = policy;
        made.token = "token-" + sandbox.link;
        return made;
    }
    static std::string allow_name(const std::string& name) {
        return R"({"egress":[{"action":"allow","target":")" + name + "\"}]}";
    }

    [[nodiscard]] static int reach(const EgressSandbox& sandbox, const std::string& address) {
        return connect_to(sandbox.place, address, kService);
    }

    /// Of a sandbox's API, with its token.
    [[nodiscard]] Awaitable<std::string> ask(const EgressSandbox& sandbox, std::string method,
                                             std::string route, std::string body = "") const {
        std::string answer = co_await request("/sandboxes/box-" + sandbox.link + route,
                                              "token-" + sandbox.link, method, std::move(body));
        CHECK(egress::test::breach_of_contract(method, route, answer).empty());
        co_return answer;
    }
    [[nodiscard]] Awaitable<std::string> request(std::string target, std::string token,
                                                 std::string method = "GET",
                                                 std::string body = "") const {
        std::string bytes = method + ' ' + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
        if (!token.empty()) bytes += "OPENSANDBOX-EGRESS-AUTH: " + token + "\r\n";
        bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        co_return co_await http::test::talk(api_port, bytes);
    }

    /// A query to a server that is not there, for addresses of its family; the response code, -1
    /// when none came.
    static Awaitable<int> query(const EgressSandbox& sandbox, std::string name,
                                std::string server = "203.0.113.53") {
        using boost::asio::ip::udp;
        const std::string head("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
        const bool v6 = server.find(':') != std::string::npos;
        const std::string message = head + egress::dns::test::wire(name) +
                                    std::string(v6 ? "\x00\x1c\x00\x01" : "\x00\x01\x00\x01", 4);
        auto fd = bind_socket(sandbox.place, v6 ? sandbox.v6 : sandbox.v4, 0, SOCK_DGRAM);
        udp::socket socket(co_await asio::this_coro::executor);
        socket.assign(v6 ? udp::v6() : udp::v4(), fd.release());
        boost::system::error_code failed;
        co_await socket.async_send_to(asio::buffer(message), udp::endpoint(ip(server), 53),
                                      asio::redirect_error(asio::use_awaitable, failed));
        std::string answer(1500, '\0');
        net::Deadline deadline(socket.get_executor(), std::chrono::seconds(5),
                               [&] { socket.cancel(); });
        const std::size_t size = co_await socket.async_receive(
            asio::buffer(answer), asio::redirect_error(asio::use_awaitable, failed));
        co_return size < 4 ? -1 : answer[3] & 0x0f;
    }

    std::function<void(egress::EnforcerSettings&)> adjust;
    /// Called on the enforcer's thread once its sockets are there.
    std::function<void()> drop_privileges;
    NameServer::Names names{{"good.test", "192.0.2.2"}, {"other.test", "198.51.100.7"}};
    EgressTopology net;
    Listener service{net.outside, "0.0.0.0", kService, 1024};
    test_support::ScratchDirectory directory;
    std::uint16_t api_port = 0;

  private:
    [[nodiscard]] UniqueFd bound(const std::string& address, int port, int type) const {
        auto fd = bind_socket(net.host, address, port, type);
        if (type == SOCK_STREAM) checked(::listen(fd.get(), 128), "listen");
        return fd;
    }

    egress::EnforcerSockets sockets() {
        const auto options = net.options();
        egress::EnforcerSockets made;
        made.dns_udp4 = bound("10.77.0.1", options.dns_port, SOCK_DGRAM);
        made.dns_tcp4 = bound("10.77.0.1", options.dns_port, SOCK_STREAM);
        made.dns_udp6 = bound("fd77::1", options.dns_port, SOCK_DGRAM);
        made.dns_tcp6 = bound("fd77::1", options.dns_port, SOCK_STREAM);
        made.intercept4 = bound("10.77.0.1", options.interceptor_port, SOCK_STREAM);
        made.intercept6 = bound("fd77::1", options.interceptor_port, SOCK_STREAM);
        made.api = bound("127.0.0.1", 0, SOCK_STREAM);
        sockaddr_in local{};
        socklen_t size = sizeof(local);
        checked(::getsockname(made.api.get(), reinterpret_cast<sockaddr*>(&local), &size),
                "getsockname");
        api_port = ntohs(local.sin_port);
        return made;
    }
};

}  // namespace opensandbox::test
