#include "egress/intercept/core/original_destination.hpp"

#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace opensandbox::egress {
namespace {

/// Of <linux/netfilter_ipv6/ip6_tables.h>, which does not compile as C++.
constexpr int kOriginalDestinationV6 = 80;

Result<Endpoint> to_endpoint(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET) {
        sockaddr_in v4;
        std::memcpy(&v4, &address, sizeof(v4));
        boost::asio::ip::address_v4 host(ntohl(v4.sin_addr.s_addr));
        return Endpoint(host, ntohs(v4.sin_port));
    }
    if (address.ss_family != AF_INET6) {
        return Error(ErrorCode::unsupported, "original destination: not a TCP connection");
    }
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof(v6));
    boost::asio::ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    boost::asio::ip::address_v6 host(bytes);
    if (host.is_v4_mapped()) {
        return Endpoint(boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, host),
                        ntohs(v6.sin6_port));
    }
    return Endpoint(host, ntohs(v6.sin6_port));
}

}  // namespace

Result<Endpoint> redirected_destination(int fd) {
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
        return Error::from_errno(errno, "original destination");
    }
    auto local = to_endpoint(own);
    if (!local) return local.error();
    bool v4 = local->address().is_v4();
    sockaddr_storage original{};
    size = sizeof(original);
    int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
    int name = v4 ? SO_ORIGINAL_DST : kOriginalDestinationV6;
    if (::getsockopt(fd, level, name, &original, &size) != 0) {
        return Error::from_errno(errno, "original destination");
    }
    auto target = to_endpoint(original);
    if (target && *target == *local) {
        return Error(ErrorCode::not_found, "original destination: the connection is for us");
    }
    return target;
}

}  // namespace opensandbox::egress
