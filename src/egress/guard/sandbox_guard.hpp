#pragma once

#include "egress/audit/auditor.hpp"
#include "egress/filter/packet_filter.hpp"
#include "egress/guard/api.hpp"
#include "egress/guard/name_gate.hpp"
#include "egress/guard/target_gate.hpp"
#include "egress/guard/vault_hook.hpp"
#include "egress/intercept/interceptor.hpp"
#include "egress/settings/environment.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace opensandbox::egress {

/// Who a guarded sandbox is.
struct GuardedIdentity {
    std::string id;
    ClientId client = 0;  ///< of no other sandbox before or after
    std::string token;    ///< for its API; empty: that is open
};

/// All that belongs to one sandbox alone. Requests of its API hold it beyond its release. One event
/// loop.
class SandboxGuard {
  public:
    /// What it shares with others, which outlives its use.
    struct Surroundings {
        PacketFilter* filter = nullptr;
        std::function<Interceptor*()> interceptor;  ///< null: there is none
        std::function<std::string()> metrics;
        /// Keeps for a later process whether there is a vault, where that counts.
        std::filesystem::path vault_mark;
    };

    /// `files` outlives it.
    SandboxGuard(asio::any_io_executor executor, asio::thread_pool& files, GuardedIdentity identity,
                 SidecarOptions options, LoadedPolicy loaded, FilteredSandbox filtered,
                 PassThroughList passed);
    SandboxGuard(const SandboxGuard&) = delete;
    SandboxGuard& operator=(const SandboxGuard&) = delete;

    /// Tells the webhook that the options name of denials. `invalid_argument` for what is no URL.
    Status set_webhook(ConnectOrigin connect);
    /// From now on the filter and the interceptor follow its policy, and its API answers: to be
    /// called once, before its targets, its API and its policy's changes are needed.
    void join(Surroundings surroundings);
    /// Puts the policy that it has in force.
    Status enforce() { return surroundings_.filter->add(filtered, policies.current()); }
    Awaitable<void> answer(http::Exchange& exchange) { return api_->handle(exchange); }

    const GuardedIdentity identity;
    const SidecarOptions options;
    const PassThroughList passed;
    FilteredSandbox filtered;
    PolicyStore policies;
    Vault vault;
    Auditor auditor;
    NameGate names;
    std::unique_ptr<TargetGate> targets;
    VaultHook hook;

  private:
    void follow_policy();
    [[nodiscard]] ApiServices services();
    [[nodiscard]] VaultConditions conditions() const;

    asio::any_io_executor executor_;
    asio::thread_pool& files_;
    Surroundings surroundings_;
    std::unique_ptr<Api> api_;
};

using GuardPtr = std::shared_ptr<SandboxGuard>;

}  // namespace opensandbox::egress
