// One proxy that serves the sandboxes of a host: network namespaces of the test's own.
#include "dns_fixture.hpp"
#include "net/route_socket.hpp"
#include "support/network_namespace.hpp"

#include <sys/socket.h>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

using opensandbox::test::TestNamespace;

net::RouteSocket routes_in(const TestNamespace& space) {
    return space.run([] {
        auto socket = net::RouteSocket::open();
        REQUIRE(socket);
        return std::move(*socket);
    });
}

/// A host with the proxy's addresses on loopback, and two sandboxes, each on a link of its own.
class Host {
  public:
    Host() {
        auto here = routes_in(space_);
        const int loopback = here.link_index("lo").value();
        REQUIRE(here.set_up(loopback));
        REQUIRE(here.add_address(loopback, gateway4(), 32));
        REQUIRE(here.add_address(loopback, gateway6(), 128));
        for (int i = 0; i < 2; ++i)
            links_[i] = attach(here, i);
    }
    static asio::ip::address gateway4() { return address("10.77.0.1"); }
    static asio::ip::address gateway6() { return address("fd77::1"); }
    [[nodiscard]] unsigned link(int sandbox) const {
        return static_cast<unsigned>(links_[sandbox]);
    }
    [[nodiscard]] const TestNamespace& space() const { return space_; }

    /// A socket of the sandbox connected to the proxy.
    [[nodiscard]] UniqueFd connected(int sandbox, const udp::endpoint& there, int type) const {
        return sandboxes_[sandbox].run([&] {
            UniqueFd fd(::socket(there.data()->sa_family, type | SOCK_CLOEXEC, 0));
            REQUIRE(fd.get() >= 0);
            REQUIRE(::connect(fd.get(), there.data(), static_cast<socklen_t>(there.size())) == 0);
            return fd;
        });
    }

  private:
    int attach(net::RouteSocket& here, int i) {
        const auto mac = [](int last) {
            return net::MacAddress{2, 0, 0, 0, 0, static_cast<std::uint8_t>(last)};
        };
        net::VethPair pair{"v" + std::to_string(i), mac(10 + i), "eth0", mac(20 + i),
                           net::NetworkNamespace::of_descriptor(sandboxes_[i].fd())};
        const int link = here.create_veth(pair).value();
        auto there = routes_in(sandboxes_[i]);
        const int eth0 = there.link_index("eth0").value();
        REQUIRE(there.set_up(eth0));
        const auto four = address("10.88.0." + std::to_string(2 + i));
        const auto six = address("fd88::" + std::to_string(2 + i));
        for (const auto& [own, gateway] :
             {std::pair(four, gateway4()), std::pair(six, gateway6())}) {
            const unsigned bits = own.is_v4() ? 32 : 128;
            REQUIRE(there.add_address(eth0, own, bits));
            net::Route out;
            out.destination = gateway;
            out.prefix = bits;
            out.link = eth0;
            REQUIRE(there.add_route(out));
            net::Route back;
            back.destination = own;
            back.prefix = bits;
            back.link = link;
            REQUIRE(here.add_route(back));
            REQUIRE(there.add_neighbour(eth0, gateway, pair.host_mac));
            REQUIRE(here.add_neighbour(link, own, pair.peer_mac));
        }
        return link;
    }

    TestNamespace space_;
    std::array<TestNamespace, 2> sandboxes_;
    std::array<int, 2> links_{};
};

UniqueFd bound(const TestNamespace& space, int type, std::uint16_t kPort) {
    return space.run([&] {
        // Both families on one socket.
        const udp::endpoint any(asio::ip::address_v6::any(), kPort);
        UniqueFd fd(::socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        REQUIRE(fd.get() >= 0);
        const int off = 0;
        REQUIRE(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
        REQUIRE(::bind(fd.get(), any.data(), static_cast<socklen_t>(any.size())) == 0);
        if (type == SOCK_STREAM) REQUIRE(::listen(fd.get(), 16) == 0);
        return fd;
    });
}

/// The kernel may lose what is sent over a link that is just coming up.
Awaitable<std::optional<std::string>> asked(udp::socket& datagrams, std::string message) {
    for (int turn = 0; turn < 40; ++turn) {
        co_await datagrams.async_send(asio::buffer(message), kAsTuple);
        std::string buffer(4096, '\0');
        net::Deadline patience(datagrams.get_executor(), std::chrono::milliseconds(500),
                               [&] { datagrams.cancel(); });
        auto [failed, size] = co_await datagrams.async_receive(asio::buffer(buffer), kAsTuple);
        patience.disarm();
        if (!failed) co_return buffer.substr(0, size);
    }
    co_return std::nullopt;
}

}  // namespace

TEST_CASE("dns proxy: sandboxes of a host are told apart by their links, each with its policy") {
    const Host host;
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    std::vector<Arrival> arrivals;
    const Identify by_link = [&](const Arrival& arrival) {
        arrivals.push_back(arrival);
        return std::optional<ClientId>(arrival.interface);
    };
    f.gate->rules[{host.link(1), "web.example"}] = false;
    f.start();
    constexpr std::uint16_t kPort = 5353;
    REQUIRE(f.proxy->serve_udp(bound(host.space(), SOCK_DGRAM, kPort), by_link));
    REQUIRE(f.proxy->serve_tcp(bound(host.space(), SOCK_STREAM, kPort), by_link));
    const std::string message = query("web.example");
    f.loop.run([&]() -> Awaitable<void> {
        for (const auto& gateway : {Host::gateway4(), Host::gateway6()}) {
            for (int sandbox = 0; sandbox < 2; ++sandbox) {
                const udp::endpoint there(gateway, kPort);
                const int expected = sandbox == 0 ? 0 : 3;
                udp::socket datagrams(f.loop.executor(), there.protocol(),
                                      host.connected(sandbox, there, SOCK_DGRAM).release());
                const auto answer = co_await asked(datagrams, message);
                REQUIRE(answer);
                CHECK(parsed(*answer).code == expected);

                auto stream = net::adopt_stream(f.loop.executor(),
                                                host.connected(sandbox, there, SOCK_STREAM));
                REQUIRE(stream);
                const std::string bytes = codec::framed(message);
                CHECK(co_await net::write_all(**stream, bytes));
                auto reply = co_await codec::read_framed(**stream);
                REQUIRE(reply);
                CHECK(parsed(*reply).code == expected);
            }
        }
    });
    // A datagram whose answer is late is sent again.
    CHECK(arrivals.size() >= 8);
    std::vector<unsigned> turns;
    for (const Arrival& arrival : arrivals)
        if (turns.empty() || turns.back() != arrival.interface) turns.push_back(arrival.interface);
    CHECK(turns == std::vector{host.link(0), host.link(1), host.link(0), host.link(1)});
    CHECK(f.sink->calls.size() == 1);
    CHECK(f.sink->calls[0].client == host.link(0));
    const auto refused = std::count_if(arrivals.begin(), arrivals.end(), [&](const Arrival& each) {
        return each.interface == host.link(1);
    });
    CHECK(std::ssize(f.denials) == refused);
}
