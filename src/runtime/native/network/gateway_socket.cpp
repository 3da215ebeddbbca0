#include "runtime/native/network/gateway_socket.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <netinet/in.h>

#include <cstring>

namespace opensandbox::runtime::native {

Result<UniqueFd> bind_gateway(int type, const boost::asio::ip::address& address,
                              std::uint16_t& port) {
    sockaddr_storage storage{};
    auto* generic = reinterpret_cast<sockaddr*>(&storage);
    auto* four = reinterpret_cast<sockaddr_in*>(&storage);
    auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
    socklen_t size = address.is_v6() ? sizeof *six : sizeof *four;
    if (address.is_v6()) {
        six->sin6_family = AF_INET6;
        const auto bytes = address.to_v6().to_bytes();
        std::memcpy(&six->sin6_addr, bytes.data(), bytes.size());
    } else {
        four->sin_family = AF_INET;
        const auto bytes = address.to_v4().to_bytes();
        std::memcpy(&four->sin_addr, bytes.data(), bytes.size());
    }
    // At the same place in both.
    four->sin_port = htons(port);
    UniqueFd fd(::socket(generic->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return last_error("socket");
    const int on = 1;
    if (address.is_v6() && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) {
        return last_error("take connections of IPv6 only");
    }
    if (::bind(fd.get(), generic, size) < 0) return last_error("bind " + address.to_string());
    if (type == SOCK_STREAM && ::listen(fd.get(), 4096) < 0) return last_error("listen");
    if (::getsockname(fd.get(), generic, &size) < 0) return last_error("getsockname");
    port = ntohs(four->sin_port);
    return fd;
}

}  // namespace opensandbox::runtime::native
