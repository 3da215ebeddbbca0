#pragma once

#include "egress/policy/effective_policy.hpp"
#include "egress/policy/policy_files.hpp"
#include "egress/policy/policy_json.hpp"
#include "egress/policy/serial_turns.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::egress {

using PolicyPtr = std::shared_ptr<const EffectivePolicy>;

struct PolicyStoreSettings {
    std::filesystem::path overlay_directory{kOverlayDirectory};
    std::filesystem::path file;  ///< of the user's policy; empty: it is kept in memory only
    std::string rules;           ///< JSON, for when the file does not serve
    std::size_t max_rules = kDefaultMaxRules;  ///< 0: no limit
    /// Whether a packet filter enforces rules for addresses; without one rules with ports are
    /// errors.
    bool filtering = true;
};

/// What the files and the environment hold at the start.
struct LoadedPolicy {
    PolicyStoreSettings settings;
    Overlay overlay;
    OverlayStamp stamp;
    InitialPolicy initial;
};
/// Blocks. A bad overlay file or bad `rules` are errors (network contract 1.2).
Result<LoadedPolicy> load_policy(PolicyStoreSettings settings);

/// Who has to follow a change.
struct PolicyFollowers {
    /// Whether what rests on the policy (bindings of the vault) stays covered; an error refuses the
    /// change. May be empty.
    std::function<Status(const EffectivePolicy&)> covered;
    /// Puts it in force in the packet filter, whole or with an error. May be empty.
    std::function<Status(const PolicyPtr&)> enforce;
    /// It is in force everywhere. May be empty.
    std::function<void(const PolicyPtr& before, const PolicyPtr& now)> published;
};

/// The policy in force. Changes come one after another and in the contract's order (1.1): coverage,
/// file, packet filter, publication. One that fails leaves nothing behind: the file and the filter
/// are taken back. One event loop; must outlive its coroutines.
class PolicyStore {
  public:
    /// What a change makes of the user's policy; nothing when there is nothing to do.
    using Edit = std::function<Result<std::optional<Policy>>(const Policy& user)>;

    PolicyStore(asio::any_io_executor executor, asio::thread_pool& files, LoadedPolicy loaded);
    void follow(PolicyFollowers followers) { followers_ = std::move(followers); }

    [[nodiscard]] const PolicyPtr& current() const { return current_; }
    /// Another one with each change; also when a failed one may have cost learned addresses.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

    /// Returns the policy in force then. `invalid_argument` and `too_large` for what is wrong with
    /// it (`too_large`: more rules than allowed), others when it could not be put in force.
    Awaitable<Result<PolicyPtr>> change(Edit edit);
    /// Reads the overlay's files when they changed. An error leaves the rules as they were; a file
    /// that is wrong is read again once it changes.
    Awaitable<Status> reload_overlay();
    /// The turn in which changes are made: what must not run beside one (of the vault) takes it.
    Awaitable<SerialTurns::Turn> turn() { return turns_.take(); }

  private:
    Awaitable<Status> put_in_force(PolicyPtr next, bool persist);
    Awaitable<Status> write_file(PolicyPtr policy);
    Awaitable<void> restore_file(bool existed);
    Awaitable<bool> file_exists();

    asio::thread_pool& files_;
    PolicyStoreSettings settings_;
    Overlay overlay_;
    OverlayStamp stamp_;
    PolicyFollowers followers_;
    PolicyPtr current_;
    std::uint64_t generation_ = 1;
    SerialTurns turns_;
};

/// Has the store reload its overlay from time to time, until cancelled; failures are logged.
Awaitable<void> watch_overlay(PolicyStore& store, std::chrono::milliseconds interval);

inline constexpr std::chrono::seconds kOverlayInterval{60};

}  // namespace opensandbox::egress
