#pragma once

#include "http/client.hpp"
#include "opensandbox/error.hpp"

#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// Where requests of one kind go: the lifecycle API, or one sandbox's agent.
struct Route {
    http::Origin origin;
    std::string host;      ///< Host field: "127.0.0.1:8080"
    std::string prefix;    ///< raw path put before every target, without trailing slash
    http::Fields headers;  ///< sent with every request
};

/// Splits "[scheme://]host[:port][/path]"; the port defaults to that of `protocol`, "http" or
/// "https", which a scheme must equal. `invalid_argument` quotes the text and says what is
/// accepted.
Result<Route> parse_route(std::string_view text, std::string_view protocol);

/// "a=1&b=2" from pairs, both sides percent-encoded.
std::string encode_query(const std::vector<std::pair<std::string, std::string>>& items);

}  // namespace opensandbox::sdk
