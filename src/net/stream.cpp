#include "net/stream.hpp"

#include "net/socket_stream.hpp"

#include <sys/socket.h>

namespace opensandbox::net {

Awaitable<void> Stream::wait_readable() {
    co_return;
}

void Stream::cancel_read() {}

void Stream::acknowledge() {}

bool Stream::quiet() {
    return true;
}

Awaitable<Status> write_all(Stream& stream, std::string_view bytes) {
    co_return co_await stream.write_all(std::span<const std::string_view>(&bytes, 1));
}

Result<std::unique_ptr<Stream>> adopt_stream(asio::any_io_executor executor, UniqueFd fd) {
    auto family = stream_socket_family(fd.get());
    if (!family) return family.error();
    if (*family != AF_UNIX) set_tcp_options(fd.get());
    return make_stream(std::move(executor), std::move(fd), *family);
}

}  // namespace opensandbox::net
