#pragma once

#include "net/stream.hpp"

#include <boost/asio/generic/stream_protocol.hpp>

#include <memory>

namespace opensandbox::net {

using StreamSocket = asio::generic::stream_protocol::socket;

/// A Stream over a connected socket that the event loop already knows.
std::unique_ptr<Stream> make_stream(StreamSocket socket);

/// Takes over a descriptor of a known address family; for TCP without setting any option.
Result<std::unique_ptr<Stream>> make_stream(asio::any_io_executor executor, UniqueFd fd,
                                            int family);

/// As connect_tcp, but the bare socket, for a stream that speaks more than TCP.
Awaitable<Result<StreamSocket>> connect_socket(std::string host, std::uint16_t port,
                                               std::chrono::milliseconds timeout);

/// The address of the other end of a socket without port, empty for Unix sockets.
std::string peer_address_of(int fd);

/// No delay for small writes, and keep-alive probes so that a vanished peer is noticed in the end.
/// Set on a listening socket they hold for what it accepts. Failure is harmless and ignored.
void set_tcp_options(int fd);

/// The address family of a stream socket; an error when the descriptor is none.
Result<int> stream_socket_family(int fd);

}  // namespace opensandbox::net
