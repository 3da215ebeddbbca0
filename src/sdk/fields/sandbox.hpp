#pragma once

#include "json/fields.hpp"
#include "sdk/fields/status.hpp"

#include <map>
#include <optional>
#include <string>

/// The documents of the API, a list of members each (json/fields.hpp): read from the server's
/// answers, written as what the command line and tools answer with, shown as rows, and described as
/// schemas.
namespace opensandbox::sdk::fields {

inline constexpr auto kPlatformMembers = [](auto& walker, auto& platform) {
    walker.put("os", platform.os);
    walker.put("arch", platform.arch);
};

/// Of a sandbox, whose login is never told.
inline constexpr auto kImageReferenceMembers = [](auto& walker, auto& reference) {
    std::optional<std::map<std::string, std::string>> login;
    walker.put(json::Field("uri", "image").as_row("image"), reference);
    walker.put(json::Field("auth").without(json::kRead | json::kRow), login);
};

inline constexpr auto kInterceptionMembers = [](auto& walker, auto& info) {
    walker.put("interceptionMode", info.interception_mode);
};

inline constexpr auto kSandboxMembers = [](auto& walker, auto& info) {
    std::optional<std::string> allocation;
    walker.put("id", info.id);
    walker.object(json::Field("status").parts(), info,
                  status_members("Pending, Running, Pausing, Paused, Resuming, Stopping, "
                                 "Terminated or Failed"));
    walker.put("entrypoint", info.entrypoint);
    walker.put(json::Field("expiresAt", "expires_at").help("When the server ends it; null: never"),
               info.expires_at);
    walker.put(json::Field("createdAt", "created_at").before_row("expires_at"), info.created_at);
    walker.object(json::Field("image").parts().before_row("entrypoint"), info.image,
                  kImageReferenceMembers);
    walker.put(json::Field("snapshotId", "snapshot_id"), info.snapshot_id);
    walker.object("platform", info.platform, kPlatformMembers);
    walker.put(json::Field("allocation").only(json::kWritten), allocation);
    walker.put("metadata", info.metadata);
    walker.put(json::Field("extensions").null_if_empty(), info.extensions);
    walker.object(json::Field("credentialProxy").only(json::kRead).may_lack(), info,
                  kInterceptionMembers);
};

}  // namespace opensandbox::sdk::fields
