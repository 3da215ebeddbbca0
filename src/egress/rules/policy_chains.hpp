#pragma once

#include "egress/rules/rule_writer.hpp"
#include "net/netlink_socket.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace opensandbox::egress::rules {

/// The chains of policies in a table, one pair for each distinct policy, named after its content:
/// equal policies share them, and chains found in the table need not be written again.
class PolicyChains {
  public:
    PolicyChains(std::string table, LearnedSets sets) : table_(std::move(table)), sets_(sets) {}

    /// Forgets everything and takes the chains that a table has.
    void adopt(const std::vector<std::string>& names);
    /// Makes the chains of a policy if there are none, in a transaction of its own: rules that are
    /// made together with what leads to them would be missed by a packet that is under way.
    Status ensure(net::NetlinkSocket& socket, const PolicyRules& rules, const std::string& digest);

    void use(const std::string& digest);
    /// Deletes the chains with the last use, in a transaction where nothing leads to them any more.
    void release(net::nft::Transaction& transaction, const std::string& digest);
    /// Deletes those that nobody uses.
    Status collect(net::NetlinkSocket& socket);

    // Names of a policy's chains, and whose a name is; empty for none.
    static std::string filter(const std::string& digest);
    static std::string diversion(const std::string& digest);
    static std::string digest_of(const std::string& chain);

  private:
    void remove(net::nft::Transaction& transaction, const std::string& digest) const;

    std::string table_;
    LearnedSets sets_;
    std::map<std::string, std::size_t> uses_;
};

}  // namespace opensandbox::egress::rules
