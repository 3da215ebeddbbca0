#pragma once

#include "egress/rules/learned_addresses.hpp"
#include "egress/rules/rule_writer.hpp"
#include "net/netlink_socket.hpp"
#include "net/nftables.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::egress::rules {

/// Writes learned addresses into their sets. `link` is empty where keys have none.
class LearnedWriter {
  public:
    LearnedWriter(std::string table, LearnedSets sets)
        : table_(std::move(table)), sets_(std::move(sets)) {}

    /// Whether they are there or not; the name is for people, and for who takes the table over.
    void put(net::nft::Transaction& transaction, const std::string& link, const std::string& name,
             const std::vector<LearnedChange>& changes) const;
    void remove(net::nft::Transaction& transaction, const std::string& link,
                const std::vector<LearnedKey>& keys) const;
    void apply(net::nft::Transaction& transaction, const std::string& link,
               const LearnedAddresses::Loss& loss) const;

  private:
    std::string table_;
    LearnedSets sets_;
};

/// What an element's key says, its link first; empty when it is malformed.
std::optional<std::pair<std::string, LearnedKey>> read_learned_key(
    std::span<const std::uint8_t> key, bool v6, bool by_link);

/// Each address with each of the parts that a scope is made of; invalid_argument when the policy's
/// parts do not make it up.
Result<std::vector<LearnedKey>> learned_keys(const std::vector<IpAddress>& addresses,
                                             const std::vector<Scope>& scopes,
                                             const std::vector<Scope>& parts);

/// A socket to the packet filter; unsupported with a clear word for a kernel without nf_tables.
Result<net::NetlinkSocket> open_packet_filter();
/// What to say when the kernel refused the rules that do not depend on anything: it lacks a part.
Error without_part(const Error& refused);
/// Deletes a table; success also when there is none. permission_denied when it has an owner.
Status delete_table(net::NetlinkSocket& socket, net::nft::Family family, const std::string& table);

}  // namespace opensandbox::egress::rules
