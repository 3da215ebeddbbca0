#include "egress/guard/own_address.hpp"

#include "base/unique_fd.hpp"
#include "egress/dns/arrival.hpp"
#include "net/unmapped_address.hpp"

#include <boost/asio/ip/udp.hpp>
#include <sys/socket.h>

namespace opensandbox::egress {

bool is_own_address(const net::Address& given) {
    const net::Address address = net::unmapped(given);
    if (address.is_loopback() || address.is_unspecified()) return true;
    const boost::asio::ip::udp::endpoint target(address, 9);
    const UniqueFd fd(
        ::socket(target.data()->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return true;
    // Sends nothing. What is delivered here is sent from the same address.
    if (::connect(fd.get(), target.data(), static_cast<socklen_t>(target.size())) != 0)
        return false;
    sockaddr_storage source{};
    socklen_t size = sizeof source;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&source), &size) != 0) return true;
    return dns::address_of(source) == address;
}

}  // namespace opensandbox::egress
