#include "runtime/native/listening_socket.hpp"

#include "runtime/native/kernel.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace opensandbox::runtime::native {

Result<UniqueFd> listen_on(const std::string& host, std::uint16_t& port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
        return Error(ErrorCode::invalid_argument, "publish host " + host + ": an IPv4 address");
    }
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return last_error("socket");
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(fd.get(), generic, size) < 0) return last_error("bind " + host);
    if (::listen(fd.get(), 4096) < 0) return last_error("listen");
    if (::getsockname(fd.get(), generic, &size) < 0) return last_error("getsockname");
    port = ntohs(address.sin_port);
    return fd;
}

}  // namespace opensandbox::runtime::native
