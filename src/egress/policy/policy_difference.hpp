#pragma once

#include "egress/policy/effective_policy.hpp"

#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// What a change of policy takes away: whose learned addresses are revoked, whose connections cut.
/// Both policies must outlive it.
class PolicyDifference {
  public:
    PolicyDifference(const EffectivePolicy& before, const EffectivePolicy& after);

    /// Rules of `after` that were not in `before`, and the other way round (action and target).
    [[nodiscard]] const std::vector<const Rule*>& added() const { return added_; }
    [[nodiscard]] const std::vector<const Rule*>& removed() const { return removed_; }
    [[nodiscard]] bool default_changed() const { return default_changed_; }

    /// Whether a name may be judged otherwise than before; quick. When not, neither must what was
    /// learned from it be judged again.
    [[nodiscard]] bool touches(std::string_view name) const;
    /// What a name was granted and no longer is; empty when nothing was lost.
    [[nodiscard]] PortSet lost(std::string_view name) const;
    /// The same for an address; `learned` is whether an allowed name gave it, before and after.
    [[nodiscard]] PortSet lost(const net::Address& address, bool learned) const;

    /// Networks in which an address may have lost something: those of changed rules; all addresses
    /// when the default action went from allow to deny. Without overlap.
    [[nodiscard]] std::vector<net::AddressBlock> blocks() const;

  private:
    const EffectivePolicy& before_;
    const EffectivePolicy& after_;
    std::vector<const Rule*> added_;
    std::vector<const Rule*> removed_;
    bool default_changed_ = false;
    bool order_changed_ = false;
    NameIndex changed_;
};

}  // namespace opensandbox::egress
