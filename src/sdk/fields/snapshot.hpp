#pragma once

#include "json/fields.hpp"
#include "sdk/fields/status.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kSnapshotMembers = [](auto& walker, auto& info) {
    walker.put("id", info.id);
    walker.put(json::Field("sandboxId", "sandbox_id"), info.sandbox_id);
    walker.put("name", info.name);
    walker.object("status", info, status_members("Creating, Ready, Failed or Deleting"));
    walker.put(json::Field("createdAt", "created_at"), info.created_at);
};

}  // namespace opensandbox::sdk::fields
