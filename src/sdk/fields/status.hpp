#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

/// The status that sandboxes and snapshots have, whose states are others; in rows its state is the
/// status.
constexpr auto status_members(const char* states) {
    return [states](auto& walker, auto& info) {
        walker.put(json::Field("state").as_row("status").help(states), info.state);
        walker.put("reason", info.reason);
        walker.put("message", info.message);
        walker.put(json::Field("lastTransitionAt", "last_transition_at").without(json::kRow),
                   info.last_transition_at);
    };
}

}  // namespace opensandbox::sdk::fields
