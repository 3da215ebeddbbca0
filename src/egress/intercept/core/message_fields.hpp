#pragma once

#include "http/fields.hpp"
#include "http/message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Removes what concerns one connection only (RFC 9110 section 7.6.1): Connection and what it
/// names, Keep-Alive, Proxy-Connection, Proxy-Authorization, TE, Transfer-Encoding, Upgrade.
/// Content-Length stays, once.
void strip_hop_fields(http::Fields& fields);

/// The one protocol that this message asks to change to or has changed to; empty when none or
/// several. Asked before strip_hop_fields().
std::optional<std::string> upgrade_protocol(const http::Fields& fields);

/// More than one Transfer-Encoding, or one in HTTP/1.0: two parties may disagree on the length.
bool has_doubtful_coding(const http::Fields& fields, int minor_version);

/// A refusal as the client gets it, plain text.
http::Response refusal_page(int status, const std::string& text);

}  // namespace opensandbox::egress
