#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kTemplateStatusMembers = [](auto& walker, auto& info) {
    walker.put("phase", info.phase);
    walker.put(json::Field("manifestRef", "manifest_ref"), info.manifest_ref);
    walker.put("message", info.message);
};

inline constexpr auto kReadinessMembers = [](auto& walker, auto& readiness) {
    walker.put("probe", readiness.probe);
    walker.put(json::Field("warmupSeconds", "warmup_seconds"), readiness.warmup_seconds);
};

inline constexpr auto kTemplateMembers = [](auto& walker, auto& info) {
    walker.put(json::Field("templateId", "template_id"), info.id);
    walker.put("image", info.image);
    walker.put("publish", info.publish);
    walker.put("format", info.format);
    walker.object("status", info, kTemplateStatusMembers);
    walker.put(json::Field("createdAt", "created_at"), info.created_at);
    walker.put(json::Field("updatedAt", "updated_at"), info.updated_at);
    walker.put(json::Field("resourceLimits", "resource_limits"), info.resource_limits);
    walker.put("entrypoint", info.entrypoint);
    walker.put("env", info.environment);
    walker.put("metadata", info.metadata);
    walker.object("readiness", info.readiness, kReadinessMembers);
};

}  // namespace opensandbox::sdk::fields
