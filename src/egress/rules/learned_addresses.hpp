#pragma once

#include "egress/rules/policy_rules.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace opensandbox::egress::rules {

/// What one element of the kernel's sets stands for.
struct LearnedKey {
    IpAddress address;
    Scope scope;
    friend bool operator==(const LearnedKey&, const LearnedKey&) = default;
};

struct LearnedKeyHash {
    std::size_t operator()(const LearnedKey& key) const;
};

/// What to send to the kernel: the element with this lifetime from now on, whether it is there or
/// not.
struct LearnedChange {
    LearnedKey key;
    std::chrono::milliseconds lifetime;
};

/// Which addresses each sandbox learned, until when, and from which names: the truth of which the
/// kernel's sets are a copy. Pure bookkeeping; not thread-safe.
class LearnedAddresses {
  public:
    using Time = std::chrono::steady_clock::time_point;
    struct Limits {
        std::size_t of_a_sandbox = 20'000;
        std::size_t in_all = 400'000;
    };
    /// Whether a name is still allowed that scope.
    using StillAllowed = std::function<bool(const std::string& name, const Scope& scope)>;
    /// What the kernel has to be told of a loss.
    struct Loss {
        std::vector<LearnedKey> removed;
        std::vector<LearnedChange> shortened;  ///< other names have them, but not for so long
    };

    LearnedAddresses() : LearnedAddresses(Limits{}) {}
    explicit LearnedAddresses(Limits limits) : limits_(limits) {}

    /// What the kernel has to be told so that all of these last until then: those it does not have,
    /// or not for so long. resource_exhausted when there were too many.
    [[nodiscard]] Result<std::vector<LearnedChange>> needed(const std::string& sandbox,
                                                            const std::vector<LearnedKey>& keys,
                                                            Time until, Time now) const;
    /// Notes them, once the kernel has them.
    void record(const std::string& sandbox, const std::string& name,
                const std::vector<LearnedKey>& keys, Time until);

    /// Takes from every name of a sandbox what it is no longer allowed. What was found in the
    /// kernel without a name is asked for as "".
    Loss revoke(const std::string& sandbox, const StillAllowed& still_allowed, Time now);
    /// All of a sandbox.
    std::vector<LearnedKey> forget(const std::string& sandbox);
    /// Drops what the kernel has dropped by itself.
    void expire(Time now);

    [[nodiscard]] bool contains(const std::string& sandbox, const LearnedKey& key, Time now) const;
    [[nodiscard]] std::vector<LearnedKey> of(const std::string& sandbox, Time now) const;
    /// The different scopes of what a sandbox learned.
    [[nodiscard]] std::vector<Scope> scopes(const std::string& sandbox) const;
    /// The names that gave this address, for people: sorted.
    [[nodiscard]] std::vector<std::string> names(const std::string& sandbox,
                                                 const IpAddress& address) const;
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    struct Grant {
        std::string name;
        Time until;
    };
    struct Entry {
        Time until;  ///< as the kernel has it
        std::vector<Grant> grants;
    };
    using Entries = std::unordered_map<LearnedKey, Entry, LearnedKeyHash>;
    /// One for each entry; its time is at most the entry's.
    struct Due {
        Time at;
        std::string sandbox;
        LearnedKey key;
        bool operator<(const Due& other) const { return at > other.at; }
    };

    Limits limits_;
    std::unordered_map<std::string, Entries> sandboxes_;
    std::priority_queue<Due> due_;
    std::size_t size_ = 0;
};

}  // namespace opensandbox::egress::rules
