#include "egress/dns/default_upstreams.hpp"

#include "net/dns/resolver_settings.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace opensandbox::egress::dns {

namespace {

namespace ip = boost::asio::ip;

constexpr std::uint16_t kDnsPort = 53;
constexpr std::size_t kMaxFromFile = 10;

}  // namespace

std::vector<ip::udp::endpoint> default_upstreams(std::string_view resolv_conf) {
    const auto named = net::dns::parse_resolver_settings(resolv_conf, kMaxFromFile);
    std::vector<ip::udp::endpoint> servers;
    for (const bool loopback : {false, true}) {
        for (const ip::address& address : named.servers) {
            if (address.is_loopback() != loopback || address.is_unspecified()) continue;
            const ip::udp::endpoint server(address, kDnsPort);
            const bool known = std::find(servers.begin(), servers.end(), server) != servers.end();
            if (!known) servers.push_back(server);
        }
    }
    if (servers.empty()) servers.emplace_back(ip::make_address("8.8.8.8"), kDnsPort);
    return servers;
}

std::vector<ip::udp::endpoint> default_upstreams_of(const std::filesystem::path& resolv_conf) {
    std::ifstream in(resolv_conf);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return default_upstreams(text);
}

}  // namespace opensandbox::egress::dns
