#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Which sandbox a connection comes from; only compared here.
using ClientId = std::uint64_t;
using Endpoint = boost::asio::ip::tcp::endpoint;

/// What the policy says of a target.
struct TargetVerdict {
    enum class Action : std::uint8_t {
        allow,  ///< through interception, where its requests are judged
        deny,
        pass_through,  ///< untouched, bytes both ways
    };

    Action action = Action::deny;
    std::string rule;  ///< which rule said so, for people and the audit
};

/// What credentials make of a TLS connection.
enum class Interest : std::uint8_t {
    any,      ///< all are intercepted
    bound,    ///< a credential is bound to its host
    unbound,  ///< none is
    unknown,  ///< what is bound cannot be told now
};

/// The policy as interception asks it. Answers at once; called on the event loop's thread. What it
/// throws counts as a denial.
class InterceptGate {
  public:
    virtual ~InterceptGate() = default;
    /// `host` is a DNS name in lower case without a final dot: the one a connection begins with
    /// (SNI), and the one each request names.
    virtual TargetVerdict judge_name(ClientId client, std::string_view host,
                                     std::uint16_t port) = 0;
    /// A target that has no name but its address.
    virtual TargetVerdict judge_address(ClientId client, const Endpoint& target) = 0;
    /// Whether `host` may stand at `address` for this client: that the name resolves to it (as the
    /// client was told), and that it is none that the name must not lead to (rebinding).
    virtual bool leads_to(ClientId client, std::string_view host, const Endpoint& address) = 0;
    /// Not `any` where only TLS to hosts with a credential is intercepted. `host` as in
    /// judge_name(), empty where there is no name.
    virtual Interest interest(ClientId /*client*/, std::string_view /*host*/,
                              std::uint16_t /*port*/) {
        return Interest::any;
    }
};

}  // namespace opensandbox::egress
