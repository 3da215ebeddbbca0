#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox {

namespace asio = boost::asio;
template <class T>
using Awaitable = asio::awaitable<T>;
/// Awaits an operation of asio that answers with its error code and what it made, never by
/// throwing.
inline constexpr auto kAsTupleAwaitable = asio::as_tuple(asio::use_awaitable);

}  // namespace opensandbox

namespace opensandbox::net {

/// A connected byte stream: TCP, Unix socket or TLS. Owns its descriptor; destruction closes it.
/// One reader and one writer may be in flight at a time. Not thread-safe.
class Stream {
  public:
    virtual ~Stream() = default;

    /// Reads at least one byte; 0 means that the peer ended its side in order.
    virtual Awaitable<Result<std::size_t>> read_some(std::span<char> into) = 0;
    /// Writes every byte of every piece, in order, with as few system calls as the kernel allows.
    virtual Awaitable<Status> write_all(std::span<const std::string_view> pieces) = 0;
    /// Returns when read_some would not wait any more (bytes, the end or an error are there), so
    /// that an idle connection needs no buffer. The default returns at once.
    virtual Awaitable<void> wait_readable();
    /// Ends a read_some or wait_readable in flight with `cancelled` without losing a byte; the
    /// stream stays usable. The default does nothing.
    virtual void cancel_read();
    /// Whether nothing has arrived that was not read, neither bytes nor the end: what a pool asks
    /// before it uses a kept connection again. The default does not know and says yes.
    [[nodiscard]] virtual bool quiet();
    /// Has what arrived acknowledged now instead of with our next bytes: for a peer that waits for
    /// that before it sends its next small message. Holds for a few packets. The default does
    /// nothing.
    virtual void acknowledge();
    /// The socket once more, non-blocking, for send_from_file() on another thread while nobody
    /// writes here. `unsupported` where bytes have to pass through write_all(), the default.
    [[nodiscard]] virtual Result<UniqueFd> share_output();
    /// Returns when the socket takes bytes again (or has failed); `cancelled` after close().
    virtual Awaitable<Status> wait_writable();
    /// Ends our side; the peer's reads see the end.
    virtual void shutdown_send() = 0;
    /// Closes both sides; operations in flight end with `cancelled`.
    virtual void close() = 0;
    /// The peer's address without port ("127.0.0.1", "::1"), empty for Unix sockets.
    [[nodiscard]] virtual std::string peer_address() const = 0;
    [[nodiscard]] virtual asio::any_io_executor executor() = 0;
};

/// Writes one piece.
Awaitable<Status> write_all(Stream& stream, std::string_view bytes);

/// Puts up to `size` bytes of a file from `offset` on a non-blocking socket without copying them
/// (sendfile(2)). Waits for the disk, not for the socket: fewer than `size` were sent when the
/// socket is full or the file ended; 0 at the end of the file. `resource_exhausted` when the socket
/// takes none now, `unsupported` when such a file cannot be sent this way, `cancelled` when the
/// peer is gone. Linux only.
Result<std::size_t> send_from_file(int socket, int file, std::uint64_t offset, std::size_t size);

/// Whether these bytes of a file are in memory already, so that sending them waits for no disk. A
/// file that this process may not write counts as being there.
bool is_in_memory(int file, std::uint64_t offset, std::size_t size);

/// Connects to a host name or address. Fails with `unavailable` (refused, unreachable, unknown
/// host) or `timeout`.
Awaitable<Result<std::unique_ptr<Stream>>> connect_tcp(std::string host, std::uint16_t port,
                                                       std::chrono::milliseconds timeout);

/// Connects to a Unix socket path.
Awaitable<Result<std::unique_ptr<Stream>>> connect_unix(std::string path);

/// Takes over a connected stream socket.
Result<std::unique_ptr<Stream>> adopt_stream(asio::any_io_executor executor, UniqueFd fd);

/// Accepts connections on a TCP or Unix socket.
class Listener {
  public:
    virtual ~Listener() = default;
    /// Waits out descriptor exhaustion instead of failing; `cancelled` after close().
    virtual Awaitable<Result<std::unique_ptr<Stream>>> accept() = 0;
    virtual void close() = 0;
    /// The bound TCP port, 0 for Unix sockets.
    [[nodiscard]] virtual std::uint16_t port() const = 0;
};

/// `host` is a numeric IPv4 or IPv6 address, "::" for all of both; port 0 lets the kernel choose.
Result<std::unique_ptr<Listener>> listen_tcp(asio::any_io_executor executor, std::string_view host,
                                             std::uint16_t port);
/// Takes over a socket that already listens (the agent's, made by the spawner).
Result<std::unique_ptr<Listener>> adopt_listener(asio::any_io_executor executor, UniqueFd fd);

}  // namespace opensandbox::net
