#include "runtime/native/ground/listening_socket.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace opensandbox::runtime::native {

Result<UniqueFd> listen_on(const std::string& host, std::uint16_t& port) {
    sockaddr_storage storage{};
    auto* generic = reinterpret_cast<sockaddr*>(&storage);
    auto* four = reinterpret_cast<sockaddr_in*>(&storage);
    auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
    socklen_t size = sizeof *four;
    if (::inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
    } else if (::inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        size = sizeof *six;
    } else {
        return Error(ErrorCode::invalid_argument, "publish host " + host + ": an address");
    }
    // At the same place in both.
    four->sin_port = htons(port);
    UniqueFd fd(::socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return last_error("socket");
    // "::" stands for the addresses of both families, whatever this host's default is.
    const int off = 0;
    if (generic->sa_family == AF_INET6 &&
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) {
        return last_error("take connections of both families");
    }
    // A port that is asked for by number is one that was ours: connections that end there are not
    // in the way, if they were allowed not to be. One that the kernel chooses is to be nobody's.
    const auto share_with_ending = [&] {
        const int on = 1;
        return ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    };
    if (port != 0 && share_with_ending() < 0) return last_error("share the port");
    if (::bind(fd.get(), generic, size) < 0) return last_error("bind " + host);
    if (port == 0 && share_with_ending() < 0) return last_error("share the port");
    if (::listen(fd.get(), 4096) < 0) return last_error("listen");
    if (::getsockname(fd.get(), generic, &size) < 0) return last_error("getsockname");
    port = ntohs(four->sin_port);
    return fd;
}

}  // namespace opensandbox::runtime::native
