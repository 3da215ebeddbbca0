#pragma once

#include "model/sandbox.hpp"

#include <string>
#include <utility>
#include <vector>

/// What happened to a sandbox since this server knows it, for diagnostics (lifecycle 5). Pure.
namespace opensandbox::lifecycle {

struct SandboxEvent {
    Timestamp at{};
    std::string reason;   ///< a status reason, or what else changed: EXPIRATION_CHANGED…
    std::string message;  ///< a sentence
    friend bool operator==(const SandboxEvent&, const SandboxEvent&) = default;
};

/// The last of them, oldest first. In memory only: after a restart it begins with the status that
/// the store remembers.
class SandboxEvents {
  public:
    static constexpr std::size_t kKept = 32;

    void add(SandboxEvent event);
    /// Adds what differs between two records of one sandbox; everything when `before` is null.
    void add_changes(const model::Sandbox* before, const model::Sandbox& after, Timestamp at);
    [[nodiscard]] const std::vector<SandboxEvent>& all() const { return events_; }

  private:
    std::vector<SandboxEvent> events_;
};

}  // namespace opensandbox::lifecycle
