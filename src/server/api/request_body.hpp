#pragma once

#include "http/exchange.hpp"

#include <optional>
#include <string>

namespace opensandbox::server {

/// Largest body of a JSON route.
inline constexpr std::size_t kMaxJsonBody = 8 * 1024 * 1024;

/// The whole body; when it is too large or broken, answers and returns nothing.
Awaitable<std::optional<std::string>> read_json_body(http::Exchange& exchange);

/// "/v1" when the request came in under it, else "".
std::string_view mount_of(const http::Exchange& exchange);

/// Binds the sandbox id of the path for logs and returns it.
std::string sandbox_id_of(http::Exchange& exchange);

/// A port in a path: a number of 1 to 65535. Otherwise the answer to send: 422 when it is no
/// number, 400 `<P>::INVALID_PORT` when it is out of range.
std::optional<std::uint16_t> parse_port(std::string_view text, const std::string& invalid_port_code,
                                        http::Response& refusal);

}  // namespace opensandbox::server
