#pragma once

#include "egress/rules/sidecar_options.hpp"
#include "net/nftables.hpp"

#include <string>

namespace opensandbox::egress::rules {

/// The sidecar's tables but for the policy, in a sandbox's own network namespace. In this order,
/// after the contract's (1.6):
/// 1. what is the sidecar's own goes out;
/// 2. answers and open connections go on;
/// 3. queries for names, which went to the sidecar's resolver by then, and what else goes to this
///    namespace itself, but for 127.0.0.11 (Docker's resolver, behind an unknown port, too);
/// 4. port 53 of exempt nameservers;
/// 5. the policy's chain (see PolicyRules), which the chain `policies` leads to; nothing without.
/// From outside come answers, and connections that begin here.
///
/// Frames that did not come this way, which raw sockets make, are dropped at the links: what may
/// go out carries a mark there that only the table knows and that is taken off before anybody sees
/// the frame.
class SidecarRuleset {
  public:
    SidecarRuleset(const SidecarOptions& options, std::uint32_t secret)
        : options_(options), secret_(secret) {}

    /// In place of what is there, but for the policy. The tables exist: of family inet, and with
    /// `parts.frames` an empty one of netdev and one of arp.
    void write(net::nft::Transaction& transaction, KernelParts parts) const;
    /// Puts the chains of a policy in force, which exist; none for the interceptor if empty.
    void write_policy(net::nft::Transaction& transaction, const std::string& filter,
                      const std::string& diversion) const;
    static constexpr LearnedSets kLearnedSets{};
    /// Of connections of the sandbox that the policy allowed, or the interceptor has: kept by
    /// connection tracking, where neither the sandbox nor other namespaces see it.
    static constexpr std::uint32_t kJudgedMark = 2;
    /// Of the sidecar's own.
    static constexpr std::uint32_t kOwnMark = 3;
    /// Of connection tracking, for what has the sidecar's mark. It permits nothing.
    static constexpr std::uint16_t kOwnZone = 1;
    /// Counts frames that were dropped; of family netdev.
    static constexpr const char* kFramesCounter = "raw_frames";

  private:
    void write_translation(RuleWriter& writer) const;
    void write_output(RuleWriter& writer) const;
    void write_own(RuleWriter& writer, const char* chain) const;
    void write_input(RuleWriter& writer) const;
    /// Queries to exempt nameservers go on.
    void accept_exempt(RuleWriter& writer, const char* chain) const;
    void write_frames(net::nft::Transaction& transaction) const;
    /// Begins with what the sidecar's own packets have.
    [[nodiscard]] net::nft::Rule own() const;

    const SidecarOptions& options_;
    std::uint32_t secret_;
};

}  // namespace opensandbox::egress::rules
