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
    out += ",\"status\":{\"state\":";
    append_json_string(out, to_string(status.state));
    if (!status.reason.empty()) {
        out += ",\"reason\":";
        append_json_string(out, status.reason);
    }
    if (!status.message.empty()) {
        out += ",\"message\":";
        append_json_string(out, status.message);
    }
    out += ",\"lastTransitionAt\":\"" + to_rfc3339(status.last_transition_at) +
           "\"},\"createdAt\":\"" + to_rfc3339(snapshot.created_at) + "\"}";
    return out;
}

}  // namespace opensandbox::model
