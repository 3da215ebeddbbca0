#pragma once

#include "egress/intercept/interceptor.hpp"

#include <string>

namespace opensandbox::egress {

/// What an operator says of the servers behind interception (network contract 1.3).
struct UpstreamOptions {
    std::string trust_directory;      ///< when it is not there, the system's roots serve
    std::string extra_ca;             ///< a PEM file, or empty
    std::string proxy;                ///< a URL, or empty
    std::string proxy_authorization;  ///< the whole value of Proxy-Authorization
};

/// `invalid_argument` for a proxy that is none.
Result<InterceptorSettings> interceptor_settings(const UpstreamOptions& options);

}  // namespace opensandbox::egress
