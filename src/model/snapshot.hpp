#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace opensandbox::model {

/// States of a snapshot (lifecycle 4).
enum class SnapshotState : std::uint8_t { creating, ready, failed, deleting };

/// "Creating", "Ready"…
std::string_view to_string(SnapshotState state);
/// Case counts (lifecycle 1.4).
std::optional<SnapshotState> parse_snapshot_state(std::string_view text);

struct SnapshotStatus {
    friend bool operator==(const SnapshotStatus&, const SnapshotStatus&) = default;

    SnapshotState state = SnapshotState::creating;
    std::string reason;
    std::string message;
    Timestamp last_transition_at{};
};

/// The kept file system of a sandbox, as the API shows it (lifecycle 4).
struct Snapshot {
    std::string id;  ///< UUID
    std::string sandbox_id;
    std::optional<std::string> name;
    SnapshotStatus status;
    Timestamp created_at{};
};

/// The body of every answer about it. Holds no nulls.
std::string to_json(const Snapshot& snapshot);

}  // namespace opensandbox::model
