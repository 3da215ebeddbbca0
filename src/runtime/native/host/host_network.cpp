#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "net/dns/resolver_settings.hpp"
#include "net/route_socket.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/host/host_preparation.hpp"
#include "runtime/native/network/egress_sockets.hpp"
#include "runtime/native/network/firewall.hpp"
#include "runtime/native/network/gateway_addresses.hpp"
#include "runtime/native/network/pasta.hpp"
#include "runtime/native/network/resolver_sockets.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace opensandbox::runtime::native {

namespace {

/// The host's search domains and options, and our own resolver.
std::string own_resolver_text(net::Ipv4Address gateway) {
    const auto known = net::dns::parse_resolver_settings(read_file_or_empty("/etc/resolv.conf"));
    std::string out = "nameserver " + gateway.to_string() + "\n";
    const auto add_line = [&](std::string_view key, const std::vector<std::string>& words) {
        if (words.empty()) return;
        out += key;
        for (const std::string& word : words)
            out += " " + word;
        out += "\n";
    };
    add_line("search", known.search);
    add_line("options", known.options);
    return out;
}

/// The link that packets without a better way leave by decides how long they may be.
std::uint32_t mtu_of_way_out() {
    constexpr std::uint32_t kUsual = 1500;
    constexpr std::uint32_t kLeast = 576;
    constexpr std::uint32_t kMost = 65'535;
    std::istringstream lines(read_file_or_empty("/proc/net/route"));
    std::string line;
    std::getline(lines, line);
    std::optional<std::pair<unsigned long, std::string>> best;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string link, destination, gateway, flags, uses, count, metric, mask;
        words >> link >> destination >> gateway >> flags >> uses >> count >> metric >> mask;
        if (!words || destination != "00000000" || mask != "00000000") continue;
        const std::pair<unsigned long, std::string> found(std::strtoul(metric.c_str(), nullptr, 10),
                                                          link);
        if (!best || found < *best) best = found;
    }
    if (!best) return kUsual;
    // Asked of the kernel: /sys shows the links of the namespace in which it was mounted.
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq asked{};
    best->second.copy(static_cast<char*>(asked.ifr_name), IFNAMSIZ - 1);
    if (!socket || ::ioctl(socket.get(), SIOCGIFMTU, &asked) < 0 || asked.ifr_mtu < 0)
        return kUsual;
    const auto mtu = static_cast<std::uint32_t>(asked.ifr_mtu);
    return mtu < kLeast ? kUsual : std::min(mtu, kMost);
}

/// Nameservers that a sandbox can reach by itself: all of the host's but those on loopback.
std::string resolver_text() {
    std::string out;
    bool loopback = false;
    for (const char* path : {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}) {
        std::istringstream in(read_file_or_empty(path));
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            std::string key;
            std::string value;
            words >> key >> value;
            if (key == "search" || key == "options") {
                out += line + "\n";
            } else if (key == "nameserver") {
                // Sandboxes speak IPv4 to the outside.
                in_addr parsed{};
                if (::inet_pton(AF_INET, value.c_str(), &parsed) != 1) continue;
                if (value.starts_with("127."))
                    loopback = true;
                else
                    out += "nameserver " + value + "\n";
            }
        }
        if (!loopback || out.find("nameserver ") != std::string::npos) break;
        out.clear();
    }
    if (out.find("nameserver ") == std::string::npos) {
        log::warn("no resolver of this host is reachable from sandboxes: names will not resolve");
    }
    return out;
}

/// Without sockets sandboxes ask the host's resolvers themselves.
void prepare_resolver(Host& host) {
    auto sockets = open_resolver_sockets(host.gateway());
    if (!sockets) {
        log::warn("no resolver for sandboxes", {{"reason", sockets.error().message()}});
        host.resolver = resolver_text();
        return;
    }
    host.resolver_sockets = std::move(*sockets);
    host.resolver = own_resolver_text(host.gateway());
}

/// How many connections a sandbox has of those that this host can track. 0 where it tracks none.
std::uint32_t share_of_connections() {
    constexpr unsigned long kSandboxes = 64;
    constexpr unsigned long kLeast = 256;
    constexpr unsigned long kMost = 4096;
    const std::string text = read_file_or_empty("/proc/sys/net/netfilter/nf_conntrack_max");
    const unsigned long all = std::strtoul(text.c_str(), nullptr, 10);
    if (all == 0) return 0;
    return static_cast<std::uint32_t>(std::clamp(all / kSandboxes, kLeast, kMost));
}

/// What IPv6 asks of a link.
constexpr std::uint32_t kLeastMtu = 1280;

/// Why sandboxes cannot have IPv6; empty when they can.
std::string lack_of_ipv6(const Host& host) {
    const std::string settings = "/proc/sys/net/ipv6/conf/";
    const std::string forwarding = read_file_or_empty(settings + "all/forwarding");
    if (forwarding.empty()) return "this kernel has none";
    for (const char* links : {"all", "default", "lo"}) {
        const std::string name = std::string(links) + "/disable_ipv6";
        if (read_file_or_empty(settings + name).starts_with('0')) continue;
        return "net.ipv6.conf." + std::string(links) + ".disable_ipv6 is set";
    }
    // Forwarding makes a host ignore routers that it may live by: not ours to switch on.
    if (!forwarding.starts_with('1')) return "net.ipv6.conf.all.forwarding is 0";
    if (host.mtu < kLeastMtu) return "the way out takes less than 1280 bytes at once";
    return {};
}

/// Where it is on already, /proc/sys may be read-only, as in containers.
Status turn_on(const char* setting) {
    if (read_file_or_empty(setting).starts_with('1')) return {};
    return write_file(setting, "1");
}

Status choose_range6(Host& host) {
    const std::string& wanted = host.options.address_range6;
    if (wanted == "none") return {};
    using Range = Result<net::Ipv6Range>;
    auto range = wanted == "auto" ? Range(own_range6(host.tag)) : net::Ipv6Range::parse(wanted);
    if (!range) return range.error();
    const std::string lack = lack_of_ipv6(host);
    if (lack.empty())
        host.range6 = *range;
    else
        host.off.emplace_back("IPv6 (" + lack + ")");
    return {};
}

}  // namespace

Status prepare_network(Host& host) {
    host.mtu = host.uplink ? kUplinkMtu : mtu_of_way_out();
    // The namespace is the server's own.
    if (host.uplink && host.uplink.ipv6()) {
        (void)write_file("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    }
    host.ipv6_links =
        host.mtu >= kLeastMtu && !read_file_or_empty("/proc/sys/net/ipv6/conf/all/mtu").empty();
    if (auto s = choose_range6(host); !s) return s;
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    if (auto s = write_down_gateways(host.gateways()); !s) return s;
    if (auto s = add_gateways(*routes, host.gateways()); !s) return s;
    if (auto s = turn_on("/proc/sys/net/ipv4/ip_forward"); !s) return s;
    prepare_resolver(host);
    std::optional<net::Ipv6Address> gateway6;
    if (host.range6) gateway6 = host.gateway6();
    const auto listen = [&host](std::uint16_t& port) {
        return host.listen(host.options.publish_host, port);
    };
    auto egress = open_egress_sockets(host.gateway(), gateway6, listen,
                                      host.options.own_directory() / "egress-port");
    if (!egress) return egress.error().within("egress control");
    host.egress_sockets = std::move(*egress);
    FirewallOptions firewall(host.firewall_table(), host.range, host.link_prefix());
    firewall.range6 = host.range6;
    firewall.resolver_port = host.resolver_sockets.port;
    firewall.egress_ports = {host.egress_sockets.dns_port, host.egress_sockets.intercept_port};
    firewall.connections = share_of_connections();
    auto installed = install_firewall(firewall);
    if (installed || firewall.connections == 0) return installed;
    // Kernels may lack what counts them.
    const std::string reason = installed.error().message();
    firewall.connections = 0;
    installed = install_firewall(firewall);
    if (installed) host.off.emplace_back("limits of connections (" + reason + ")");
    return installed;
}

}  // namespace opensandbox::runtime::native
