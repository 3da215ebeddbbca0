#include "egress/rules/host_table.hpp"

// What a host's sandboxes learn, and lose again.
namespace opensandbox::egress::rules {

namespace {

using net::nft::Transaction;

}  // namespace

Status HostTable::apply_loss(const std::string& link, const LearnedAddresses::Loss& loss) {
    if (loss.removed.empty() && loss.shortened.empty()) return {};
    Transaction transaction;
    learned_writer().apply(transaction, link, loss);
    return transaction.commit(socket_);
}

Status HostTable::learn(const std::string& link, const std::string& name,
                        const std::vector<IpAddress>& addresses, const std::vector<Scope>& scopes,
                        std::chrono::seconds lifetime) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    const auto keys = learned_keys(addresses, scopes, (*sandbox)->rules->learned_scopes);
    if (!keys) return keys.error();
    const auto now = Clock::now();
    learned_.expire(now);
    const auto until = now + lifetime;
    const auto changes = learned_.needed(link, *keys, until, now);
    if (!changes) return changes.error();
    if (!changes->empty()) {
        Transaction transaction;
        learned_writer().put(transaction, link, name, *changes);
        if (auto committed = transaction.commit(socket_); !committed) return committed;
    }
    learned_.record(link, name, *keys, until);
    return {};
}

Result<ConnectionCut> HostTable::revoke(const std::string& link,
                                        const LearnedAddresses::StillAllowed& still_allowed) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    const auto loss = learned_.revoke(link, still_allowed, Clock::now());
    if (auto applied = apply_loss(link, loss); !applied) return applied.error();
    return cut_of(link, **sandbox);
}

}  // namespace opensandbox::egress::rules
