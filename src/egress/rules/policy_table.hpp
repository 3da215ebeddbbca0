#pragma once

#include "egress/rules/connection_cut.hpp"
#include "egress/rules/learned_addresses.hpp"
#include "egress/rules/policy_chains.hpp"
#include "egress/rules/rule_writer.hpp"
#include "net/netlink_socket.hpp"
#include "net/nftables.hpp"

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress::rules {

/// What a host's table and a sidecar's have in common: the socket that owns it, the chains of the
/// policies in force, and what sandboxes learned, in the kernel's sets and in a copy here. A
/// sandbox goes by the name of its link; by "" where it is the only one. Not thread-safe.
class PolicyTable {
  public:
    using Clock = std::chrono::steady_clock;
    using StillAllowed = LearnedAddresses::StillAllowed;

    /// Forgets what has expired: to be called every few seconds.
    void expire() { learned_.expire(Clock::now()); }
    [[nodiscard]] const LearnedAddresses& learned() const { return learned_; }
    /// Packets refused for this reason so far.
    Result<std::uint64_t> refused(Reason reason) {
        return packets(net::nft::Family::inet, RuleWriter::refusal(reason));
    }

  protected:
    using SharedRules = std::shared_ptr<const PolicyRules>;
    /// Of the network namespace of the thread that opened them.
    struct Sockets {
        net::NetlinkSocket filter;
        std::shared_ptr<SharedTracking> tracking;
    };

    /// unsupported with a clear word for a kernel without nf_tables.
    static Result<Sockets> open_sockets();
    PolicyTable(std::string name, LearnedSets sets, Sockets sockets);

    /// Has `write` make the table and what depends on no policy, on older kernels with the first of
    /// the `lesser` parts that they take. unsupported when they take none.
    Status make(std::initializer_list<KernelParts> lesser, const std::function<Status()>& write);
    /// Adds the table to a transaction, as this socket's own where the kernel has such.
    void hold(net::nft::Transaction& transaction, net::nft::Family family) const;
    /// What errors of opening it begin with.
    [[nodiscard]] std::string context() const { return "egress table \"" + name_ + '"'; }

    /// Takes the chains of policies that the table has, none of them in use yet.
    Status adopt_chains();
    /// Takes what the table's sets hold, with the names that it was learned from.
    Status adopt_learned();
    /// A set that is not there is an empty one.
    Result<std::vector<net::nft::ListedElement>> list(net::nft::Family family,
                                                      const std::string& set);
    static IpAddress read_address(net::nft::KeyReader& key, bool v6);
    Result<std::uint64_t> packets(net::nft::Family family, const std::string& counter);

    /// Has `enforce` put a policy in force, and closes what it no longer allows of what was
    /// learned.
    Status change_policy(const std::string& link, PolicyRules rules,
                         const StillAllowed& still_allowed,
                         const std::function<Status(SharedRules)>& enforce);
    Status learn(const std::string& link, const PolicyRules& rules, const std::string& name,
                 const std::vector<IpAddress>& addresses, const std::vector<Scope>& scopes,
                 std::chrono::seconds lifetime);
    Status revoke(const std::string& link, const StillAllowed& still_allowed);
    /// Takes all that a sandbox learned out of the sets; learned() has it still.
    void remove_learned(net::nft::Transaction& transaction, const std::string& link) const;

    [[nodiscard]] Judgement judge(const std::string& link, const PolicyRules& rules,
                                  const IpAddress& destination, std::uint8_t protocol,
                                  std::uint16_t port) const;
    /// Of the connections from these sources, or of this mark, that are not allowed at this moment.
    template <class Which>
    [[nodiscard]] ConnectionCut cut(const std::string& link, const Which& which,
                                    SharedRules rules) const {
        return {tracking_, which, std::move(rules), learned_.of(link, Clock::now())};
    }
    /// Of all connections from these sources.
    [[nodiscard]] ConnectionCut cut_all(std::vector<IpAddress> sources) const {
        return {tracking_, std::move(sources)};
    }

    net::NetlinkSocket socket_;
    PolicyChains chains_;
    LearnedAddresses learned_;
    KernelParts parts_;

  private:
    void put(net::nft::Transaction& transaction, const std::string& link, const std::string& name,
             const std::vector<LearnedChange>& changes) const;
    void remove(net::nft::Transaction& transaction, const std::string& link,
                const std::vector<LearnedKey>& keys) const;
    Status close(const std::string& link, const LearnedAddresses::Loss& loss);

    std::string name_;
    LearnedSets sets_;
    std::shared_ptr<SharedTracking> tracking_;
};

/// Deletes the tables of a name; success also when there are none. permission_denied when one has
/// an owner that lives.
Status remove_tables(const std::string& name, std::initializer_list<net::nft::Family> families);

}  // namespace opensandbox::egress::rules
