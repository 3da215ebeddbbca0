#include "runtime/native/network/egress_sockets.hpp"

#include "base/log.hpp"
#include "base/replace_file.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/network/gateway_socket.hpp"

#include <charconv>
#include <chrono>
#include <thread>

namespace opensandbox::runtime::native {

namespace {

/// Attempts at ports that are free for everything that shares them.
constexpr int kPortAttempts = 16;

/// For the enforcer of a spawner that is gone: it holds the API's port until it has seen the end.
constexpr auto kPredecessorTime = std::chrono::milliseconds(2000);
constexpr auto kPredecessorInterval = std::chrono::milliseconds(5);

struct PortGroup {
    UniqueFd udp4, tcp4, udp6, tcp6;
    std::uint16_t port = 0;
};

/// The same port for both families, and for UDP where it is wanted.
Result<PortGroup> open_group(net::Ipv4Address gateway,
                             const std::optional<net::Ipv6Address>& gateway6, bool datagrams) {
    const boost::asio::ip::address four = gateway;
    Error last;
    for (int round = 0; round < kPortAttempts; ++round) {
        PortGroup group;
        auto tcp4 = bind_gateway(SOCK_STREAM, four, group.port);
        if (!tcp4) return tcp4.error();
        group.tcp4 = std::move(*tcp4);
        Status rest;
        const auto add = [&](UniqueFd& into, int type, const boost::asio::ip::address& address) {
            if (!rest) return;
            auto made = bind_gateway(type, address, group.port);
            if (made)
                into = std::move(*made);
            else
                rest = made.error();
        };
        if (datagrams) add(group.udp4, SOCK_DGRAM, four);
        if (gateway6) add(group.tcp6, SOCK_STREAM, *gateway6);
        if (gateway6 && datagrams) add(group.udp6, SOCK_DGRAM, *gateway6);
        if (rest) return group;
        last = rest.error();
    }
    return last;
}

std::uint16_t recorded_port(const std::filesystem::path& record) {
    const std::string text = read_file_or_empty(record);
    std::uint16_t port = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), port);
    return end.ec == std::errc() ? port : 0;
}

/// The port that clients know, also when its holder is just ending. Nothing else runs yet.
Result<UniqueFd> take_over(const ListenForClients& listen, std::uint16_t port) {
    const auto until = std::chrono::steady_clock::now() + kPredecessorTime;
    for (;;) {
        auto made = listen(port);
        if (made || std::chrono::steady_clock::now() > until) return made;
        std::this_thread::sleep_for(kPredecessorInterval);
    }
}

Result<UniqueFd> open_api(const ListenForClients& listen, const std::filesystem::path& record,
                          std::uint16_t& port) {
    const std::uint16_t earlier = recorded_port(record);
    port = earlier;
    auto made = earlier == 0 ? listen(port) : take_over(listen, port);
    if (!made && earlier != 0) {
        log::warn("the port of the egress API is taken; it gets another", {{"port", earlier}});
        port = 0;
        made = listen(port);
    }
    if (!made) return made;
    if (port == earlier) return made;
    if (auto s = replace_file(record, std::to_string(port)); !s) return s.error();
    return made;
}

}  // namespace

std::vector<int> EgressSockets::descriptors() const {
    std::vector<int> all;
    for (const UniqueFd* fd :
         {&dns_udp4, &dns_tcp4, &intercept4, &dns_udp6, &dns_tcp6, &intercept6, &api}) {
        if (*fd) all.push_back(fd->get());
    }
    return all;
}

Result<EgressSockets> open_egress_sockets(net::Ipv4Address gateway,
                                          const std::optional<net::Ipv6Address>& gateway6,
                                          const ListenForClients& listen,
                                          const std::filesystem::path& record) {
    EgressSockets out;
    auto names = open_group(gateway, gateway6, true);
    if (!names) return names.error().within("DNS");
    out.dns_udp4 = std::move(names->udp4);
    out.dns_tcp4 = std::move(names->tcp4);
    out.dns_udp6 = std::move(names->udp6);
    out.dns_tcp6 = std::move(names->tcp6);
    out.dns_port = names->port;
    auto intercept = open_group(gateway, gateway6, false);
    if (!intercept) return intercept.error().within("interception");
    out.intercept4 = std::move(intercept->tcp4);
    out.intercept6 = std::move(intercept->tcp6);
    out.intercept_port = intercept->port;
    auto api = open_api(listen, record, out.api_port);
    if (!api) return api.error().within("API");
    out.api = std::move(*api);
    return out;
}

}  // namespace opensandbox::runtime::native
