#include "runtime/native/network/host_addresses.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <sstream>

namespace opensandbox::runtime::native {

namespace {

using boost::asio::ip::address;
using boost::asio::ip::address_v4;
using boost::asio::ip::address_v6;

std::optional<address> address_in(const sockaddr* from) {
    if (from && from->sa_family == AF_INET) {
        address_v4::bytes_type bytes;
        std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr,
                    bytes.size());
        return address(address_v4(bytes));
    }
    if (from && from->sa_family == AF_INET6) {
        address_v6::bytes_type bytes;
        std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr,
                    bytes.size());
        return address(address_v6(bytes));
    }
    return std::nullopt;
}

}  // namespace

Result<std::set<address>> host_addresses() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) < 0) return last_error("list the host's addresses");
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, ::freeifaddrs);
    std::set<address> out;
    for (const ifaddrs* item = first; item; item = item->ifa_next) {
        const auto found = address_in(item->ifa_addr);
        if (!found || found->is_loopback()) continue;
        if (found->is_v6() && found->to_v6().is_link_local()) continue;
        out.insert(*found);
    }
    return out;
}

Result<UniqueFd> watch_host_addresses() {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    if (!fd) return last_error("watch the host's addresses");
    sockaddr_nl name{};
    name.nl_family = AF_NETLINK;
    name.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) < 0) {
        return last_error("watch the host's addresses");
    }
    return fd;
}

void forget_address_changes(int watch) {
    std::array<char, 8192> buffer;
    // ENOBUFS tells that some were lost: they are read anew anyway.
    while (::recv(watch, buffer.data(), buffer.size(), 0) >= 0 || errno == ENOBUFS ||
           errno == EINTR) {
    }
}

bool has_default_route(std::string_view route) {
    std::istringstream lines{std::string(route)};
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string link, destination, gateway, flags, uses, count, metric, mask;
        words >> link >> destination >> gateway >> flags >> uses >> count >> metric >> mask;
        if (words && destination == "00000000" && mask == "00000000") return true;
    }
    return false;
}

bool has_default_route6(std::string_view ipv6_route) {
    std::istringstream lines{std::string(ipv6_route)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string destination, prefix, source, source_prefix, gateway, metric, count, uses, flags,
            link;
        words >> destination >> prefix >> source >> source_prefix >> gateway >> metric >> count >>
            uses >> flags >> link;
        // Every kernel has one over loopback that refuses.
        if (words && destination == std::string(32, '0') && prefix == "00" && link != "lo") {
            return true;
        }
    }
    return false;
}

}  // namespace opensandbox::runtime::native
