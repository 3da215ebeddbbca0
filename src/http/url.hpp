#pragma once

#include "base/error.hpp"
#include "http/client.hpp"

#include <string>
#include <string_view>

namespace opensandbox::http {

/// Where an http:// or https:// URL points to.
struct Url {
    Origin origin;
    std::string path;  ///< raw; empty when the URL ends with its host
};

/// Reads http://host[:port][/path], or https, which trusts the system's roots (SSL_CERT_FILE and
/// SSL_CERT_DIR replace them). `invalid_argument` for user names, queries, fragments and whatever
/// is no URL. Pure.
Result<Url> parse_url(std::string_view text);

}  // namespace opensandbox::http
