#include "model/snapshot.hpp"

#include "model/json_text.hpp"

#include <array>

namespace opensandbox::model {
namespace {

constexpr std::array<std::string_view, 4> kNames{"Creating", "Ready", "Failed", "Deleting"};

}  // namespace

std::string_view to_string(SnapshotState state) {
    return kNames[static_cast<std::size_t>(state)];
}

std::optional<SnapshotState> parse_snapshot_state(std::string_view text) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] == text) return static_cast<SnapshotState>(i);
    }
    return std::nullopt;
}

std::string to_json(const Snapshot& snapshot) {
    std::string out = "{\"id\":";
    append_json_string(out, snapshot.id);
    out += ",\"sandboxId\":";
    append_json_string(out, snapshot.sandbox_id);
    if (snapshot.name) {
        out += ",\"name\":";
        append_json_string(out, *snapshot.name);
    }
    const SnapshotStatus& status = snapshot.status;
    out += ',';
    append_json_status(out, to_string(status.state), status.reason, status.message,
                       status.last_transition_at);
    out += ",\"createdAt\":\"" + to_rfc3339(snapshot.created_at) + "\"}";
    return out;
}

}  // namespace opensandbox::model
