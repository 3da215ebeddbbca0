#pragma once

#include "egress/intercept/core/gate.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::egress {

enum class Outcome : std::uint8_t {
    intercepted,
    passed_through,
    denied,  ///< policy
    failed,  ///< the server, the client or the network
};

/// How a connection was judged, once its first bytes were seen.
struct ConnectionRecord {
    ClientId client = 0;
    Endpoint target;
    std::string_view scheme;  ///< "http", "https", empty for neither
    std::string_view host;    ///< as far as known
    Outcome outcome = Outcome::denied;
    std::string_view reason;  ///< the rule, or what went wrong
    /// Of a closed set (selection.hpp); empty where all TLS is intercepted, and but for the first
    /// record of a connection.
    std::string_view selection;
};

/// How a request was judged. Holds nothing that a hook has put in.
struct RequestRecord {
    ClientId client = 0;
    Endpoint target;
    std::string_view scheme;
    std::string_view host;
    std::string_view method;
    std::string_view path;  ///< as the client sent it, without its query
    Outcome outcome = Outcome::denied;
    int status = 0;  ///< of our refusal; 0 for a request that went on
    std::string_view reason;
};

/// Sees every verdict; views hold during the call only. Must not throw.
class InterceptAudit {
  public:
    virtual ~InterceptAudit() = default;
    virtual void on_connection(const ConnectionRecord& record) = 0;
    virtual void on_request(const RequestRecord& record) = 0;
};

}  // namespace opensandbox::egress
