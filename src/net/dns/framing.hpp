#pragma once

#include "net/dns/message.hpp"
#include "net/stream.hpp"

#include <string>
#include <string_view>

namespace opensandbox::net::dns {

/// A message with its length before it, as TCP carries it (RFC 1035 4.2.2).
std::string framed(std::string_view message);

/// Reads one such message. `cancelled` at the end of the stream, `too_large` above `limit` bytes.
Awaitable<Result<std::string>> read_framed(Stream& stream, std::size_t limit = kMaxMessage);

}  // namespace opensandbox::net::dns
