#pragma once

#include "egress/api/api.hpp"
#include "egress/audit/auditor.hpp"
#include "egress/enforcement/name_gate.hpp"
#include "egress/enforcement/packet_policy.hpp"
#include "egress/enforcement/resolved_names.hpp"
#include "egress/enforcement/target_gate.hpp"
#include "egress/enforcement/vault_hook.hpp"
#include "egress/settings/environment.hpp"

#include <string>
#include <vector>

namespace opensandbox::egress {

/// Who a guarded sandbox is, and what was said of it.
struct GuardedIdentity {
    GuardedIdentity() = default;
    std::string id;
    std::string link;
    std::vector<net::Address> addresses;
    ClientId client = 0;  ///< of no other sandbox before or after
    std::string token;
};

/// All that belongs to one sandbox alone. Requests of its API hold it beyond its release. One event
/// loop.
class SandboxGuard {
  public:
    /// What others answer for.
    struct Surroundings {
        Surroundings() = default;
        bool interceptor = false;  ///< there is one
        TargetGate::LeadsTo leads_to;
        std::function<std::string()> metrics;
        std::function<Awaitable<Status>(bool held)> mark_vault;  ///< as in ApiServices
        std::function<void()> vault_changed;
    };

    SandboxGuard(asio::any_io_executor executor, asio::thread_pool& files, GuardedIdentity identity,
                 SidecarOptions options, LoadedPolicy loaded, PacketPolicySettings packet,
                 PassThroughList passed);
    SandboxGuard(const SandboxGuard&) = delete;
    SandboxGuard& operator=(const SandboxGuard&) = delete;

    /// To be called once, before the rest.
    void open_api(Surroundings surroundings);
    Awaitable<void> answer(http::Exchange& exchange) { return api_->handle(exchange); }

    const GuardedIdentity identity;
    const SidecarOptions options;
    const PacketPolicySettings packet;
    const PassThroughList passed;
    PolicyStore policies;
    Vault vault;
    Auditor auditor;
    NameGate names;
    std::unique_ptr<TargetGate> targets;
    VaultHook hook;
    ResolvedNames resolved;
    PolicyPtr in_force;     ///< as the packet filter has it; null: none yet
    bool released = false;  ///< the link may be another's by now

  private:
    [[nodiscard]] VaultConditions conditions() const;

    bool interceptor_ = false;
    std::unique_ptr<Api> api_;
};

}  // namespace opensandbox::egress
