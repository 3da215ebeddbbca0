#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto template_status_members = [](auto& walker, auto& info) {
    walker.put("phase", info.phase);
    walker.put(json::Field("manifestRef", "manifest_ref"), info.manifest_ref);
    walker.put("message", info.message);
};

inline constexpr auto readiness_members = [](auto& walker, auto& readiness) {
    walker.put("probe", readiness.probe);
    walker.put(json::Field("warmupSeconds", "warmup_seconds"), readiness.warmup_seconds);
};

inline constexpr auto template_members = [](auto& walker, auto& info) {
    walker.put(json::Field("templateId", "template_id"), info.id);
    walker.put("image", info.image);
    walker.put("publish", info.publish);
    walker.put("format", info.format);
    walker.object("status", info, template_status_members);
    walker.put(json::Field("createdAt", "created_at"), info.created_at);
    walker.put(json::Field("updatedAt", "updated_at"), info.updated_at);
    walker.put(json::Field("resourceLimits", "resource_limits"), info.resource_limits);
    walker.put("entrypoint", info.entrypoint);
    walker.put("env", info.environment);
    walker.put("metadata", info.metadata);
    walker.object("readiness", info.readiness, readiness_members);
};

}  // namespace opensandbox::sdk::fields
