#pragma once

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress::dns {

/// Whose query it is: an opaque number that the owner of the listeners gives out.
using ClientId = std::uint64_t;

/// Ports, protocols, or whatever else a verdict is limited to: what a gate makes, the address sink
/// beside it understands.
class VerdictScope {
  public:
    virtual ~VerdictScope() = default;
};

/// What policy says of a name.
struct Verdict {
    bool allowed = false;
    /// A rule names exactly this name: the limits against tunnelling do not hold for it.
    bool exact = false;
    /// Changes whenever addresses learned under an earlier verdict may have been withdrawn or need
    /// another scope: with it they are learned again.
    std::uint64_t generation = 0;
    /// Of a denial, for people: the rule, or that none allows the name. At most 200 bytes of it
    /// reach the client.
    std::string reason;
    std::shared_ptr<const VerdictScope> scope;  ///< for the address sink
};

/// Policy as far as names go. Asked for every query, cached answers included, so it must be quick.
/// Names are lower case without the last dot, the root is empty; odd bytes are \DDD, dots in
/// labels \. (net::dns::Question).
class Gate {
  public:
    virtual ~Gate() = default;
    virtual Verdict judge(ClientId client, std::string_view name, std::uint16_t type) = 0;
    /// The same once an answer is there that goes through aliases (CNAME, DNAME): `names` holds the
    /// queried name, then what it leads to, at most 17 in all. This verdict then counts instead of
    /// that of judge(): it may deny, and its scope is what addresses are learned with. By default
    /// the queried name decides: who may ask for it may follow it.
    virtual Verdict judge_chain(ClientId client, const std::vector<std::string>& names,
                                std::uint16_t type) {
        return judge(client, names.front(), type);
    }
    /// Whether an answer may hold an address that is_special(), which is otherwise
    /// taken out of it.
    virtual bool allows_inner(ClientId client, std::string_view name,
                              const boost::asio::ip::address& address) {
        (void)client, (void)name, (void)address;
        return false;
    }
};

}  // namespace opensandbox::egress::dns
