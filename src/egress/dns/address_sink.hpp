#pragma once

#include "egress/dns/gate.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <vector>

namespace opensandbox::egress::dns {

struct LearnedAddress {
    boost::asio::ip::address address;
    std::chrono::seconds lifetime{};  ///< from now
    friend bool operator==(const LearnedAddress&, const LearnedAddress&) = default;
};

/// Opens addresses that an allowed name has. Called before the client gets the answer that holds
/// them; when it fails the client gets SERVFAIL instead. Called once for each client and fresh
/// answer (again when Verdict::generation changed), since what is served from the cache later
/// expires no later. Policy may take the name away while learn() runs: then the answer is denied,
/// and the sink has to see to it that nothing stays open (judge again after the addresses are in,
/// or let withdrawals follow what runs).
class AddressSink {
  public:
    virtual ~AddressSink() = default;
    virtual Awaitable<Status> learn(ClientId client, std::string name,
                                    std::vector<LearnedAddress> addresses,
                                    std::shared_ptr<const VerdictScope> scope) = 0;
};

}  // namespace opensandbox::egress::dns
