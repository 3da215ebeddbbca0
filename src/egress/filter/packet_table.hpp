#pragma once

#include "egress/rules/host_table.hpp"
#include "egress/rules/sidecar_table.hpp"
#include "net/address_block.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::egress {

/// The table that a packet filter writes to: a host's, of many sandboxes, or a sidecar's, whose one
/// sandbox has no link (""). Calls are as those of rules::HostTable.
class PacketTable {
  public:
    using Cut = rules::ConnectionCut;
    using StillAllowed = rules::LearnedAddresses::StillAllowed;
    using Refusals = std::vector<std::pair<std::string_view, std::uint64_t>>;

    PacketTable() = default;
    virtual ~PacketTable() = default;
    PacketTable(const PacketTable&) = delete;
    PacketTable& operator=(const PacketTable&) = delete;

    virtual Result<Cut> add(const rules::GuardedSandbox& sandbox, rules::PolicyRules rules,
                            const StillAllowed& still_allowed) = 0;
    virtual Result<Cut> set_policy(const std::string& link, rules::PolicyRules rules,
                                   const StillAllowed& still_allowed) = 0;
    /// `unsupported` in a sidecar's: its sandbox goes with all of it.
    virtual Result<Cut> remove(const std::string& link) = 0;
    virtual Status learn(const std::string& link, const std::string& name,
                         const std::vector<net::Address>& addresses,
                         const std::vector<rules::Scope>& scopes,
                         std::chrono::seconds lifetime) = 0;
    /// Forgets what has expired, and takes in links that are new; to be called every few seconds.
    virtual void tend() = 0;

    [[nodiscard]] virtual std::optional<Cut> cut(const std::string& link) const = 0;
    [[nodiscard]] virtual const rules::LearnedAddresses& learned() const = 0;
    [[nodiscard]] virtual bool guards(const std::string& link) const = 0;
    [[nodiscard]] virtual std::vector<std::string> unclaimed() const = 0;
    /// Packets by the reason for which they were refused; without those that could not be read.
    virtual Refusals refusals() = 0;
};

std::unique_ptr<PacketTable> packet_table(rules::HostTable table);
std::unique_ptr<PacketTable> packet_table(rules::SidecarTable table);

}  // namespace opensandbox::egress
