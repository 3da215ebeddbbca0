#pragma once

#include <string>
#include <string_view>

/// Header names of credentials (network contract 1.9).
namespace opensandbox::egress {

/// Whether it is a token that may name a header (RFC 9110).
bool is_header_name(std::string_view name);

/// Whether a header can carry the value: no control characters but tab, no white space at the ends.
bool is_header_value(std::string_view value);

/// As Go writes header names: "x-api-key" becomes "X-Api-Key".
std::string canonical_header_name(std::string_view name);

/// Whether no credential may be sent under this name, whatever its case: it steers the connection
/// or the message's form.
bool is_reserved_header(std::string_view name);

/// Whether placeholders in this header stay as they are: the reserved ones, others that belong to
/// one connection, and those by which browsers and proxies tell where a request comes from.
bool is_protected_header(std::string_view name);

}  // namespace opensandbox::egress
