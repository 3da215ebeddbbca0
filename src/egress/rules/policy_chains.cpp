#include "egress/rules/policy_chains.hpp"

namespace opensandbox::egress::rules {

namespace {

constexpr std::string_view kFilterPrefix = "policy_";
constexpr std::string_view kDiversionPrefix = "divert_";

std::string chain_name(std::string_view prefix, const std::string& digest) {
    return digest.empty() ? std::string() : std::string(prefix) + digest;
}

}  // namespace

std::string PolicyChains::filter(const std::string& digest) {
    return chain_name(kFilterPrefix, digest);
}

std::string PolicyChains::diversion(const std::string& digest) {
    return chain_name(kDiversionPrefix, digest);
}

std::string PolicyChains::digest_of(const std::string& chain) {
    for (const auto prefix : {kFilterPrefix, kDiversionPrefix})
        if (chain.starts_with(prefix)) return chain.substr(prefix.size());
    return {};
}

void PolicyChains::adopt(const std::vector<std::string>& names) {
    uses_.clear();
    for (const auto& name : names)
        if (auto digest = digest_of(name); !digest.empty()) uses_.emplace(std::move(digest), 0);
}

Status PolicyChains::ensure(net::NetlinkSocket& socket, const PolicyRules& rules,
                            const std::string& digest) {
    if (uses_.contains(digest)) return {};
    net::nft::Transaction transaction;
    RuleWriter writer(transaction, table_, sets_);
    for (const auto& name : {filter(digest), diversion(digest)})
        writer.chain(name);
    writer.write_filter(filter(digest), rules);
    writer.write_diversion(diversion(digest), rules);
    if (auto committed = transaction.commit(socket); !committed) return committed;
    uses_.emplace(digest, 0);
    return {};
}

void PolicyChains::use(const std::string& digest) {
    ++uses_[digest];
}

void PolicyChains::remove(net::nft::Transaction& transaction, const std::string& digest) const {
    for (const auto& name : {filter(digest), diversion(digest)})
        transaction.delete_chain(net::nft::Family::inet, table_, name);
}

void PolicyChains::release(net::nft::Transaction& transaction, const std::string& digest) {
    const auto found = uses_.find(digest);
    if (found == uses_.end() || found->second == 0) return;
    --found->second;
    if (found->second > 0) return;
    remove(transaction, digest);
    uses_.erase(found);
}

Status PolicyChains::collect(net::NetlinkSocket& socket) {
    net::nft::Transaction transaction;
    bool any = false;
    for (const auto& [digest, uses] : uses_) {
        if (uses > 0) continue;
        remove(transaction, digest);
        any = true;
    }
    if (!any) return {};
    if (auto committed = transaction.commit(socket); !committed) return committed;
    std::erase_if(uses_, [](const auto& entry) { return entry.second == 0; });
    return {};
}

}  // namespace opensandbox::egress::rules
