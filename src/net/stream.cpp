#include "net/stream.hpp"

#include "net/socket_stream.hpp"

#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <vector>

namespace opensandbox::net {

Awaitable<void> Stream::wait_readable() {
    co_return;
}

void Stream::cancel_read() {}

void Stream::acknowledge() {}

bool Stream::quiet() {
    return true;
}

Result<UniqueFd> Stream::share_output() {
    return Error(ErrorCode::unsupported, "the connection is no bare socket");
}

Awaitable<Status> Stream::wait_writable() {
    co_return Status();
}

Result<std::size_t> send_from_file(int socket, int file, std::uint64_t offset, std::size_t size) {
    std::size_t sent = 0;
    auto at = static_cast<off_t>(offset);
    while (sent < size) {
        ssize_t count = ::sendfile(socket, file, &at, size - sent);
        if (count == 0) break;
        if (count > 0) {
            sent += static_cast<std::size_t>(count);
            continue;
        }
        if (errno == EINTR) continue;
        // What is wrong shows again at the next piece.
        if (sent > 0) break;
        switch (errno) {
            case EAGAIN: return Error::from_errno(EAGAIN, "send a file");
            case EINVAL:
            case ENOSYS:
            case EPERM: return Error(ErrorCode::unsupported, "send a file: not this one");
            case EPIPE:
            case ECONNRESET: return Error(ErrorCode::cancelled, "the peer is gone");
            default: return Error(ErrorCode::io, Error::from_errno(errno, "send a file").message());
        }
    }
    return sent;
}

bool is_in_memory(int file, std::uint64_t offset, std::size_t size) {
    static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t begin = offset - offset % page;
    std::size_t span = size + static_cast<std::size_t>(offset - begin);
    void* view = ::mmap(nullptr, span, PROT_READ, MAP_SHARED, file, static_cast<off_t>(begin));
    if (view == MAP_FAILED) return false;
    std::vector<unsigned char> pages((span + page - 1) / page);
    bool known = ::mincore(view, span, pages.data()) == 0;
    ::munmap(view, span);
    return known && std::ranges::all_of(pages, [](unsigned char there) { return there & 1; });
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
