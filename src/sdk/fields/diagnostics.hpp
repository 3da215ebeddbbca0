#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kDiagnosticMembers = [](auto& walker, auto& content) {
    walker.put(json::Field("sandboxId", "sandbox_id"), content.sandbox_id);
    walker.put("kind", content.kind);
    walker.put("scope", content.scope);
    walker.put("delivery", content.delivery);
    walker.put(json::Field("contentType", "content_type"), content.content_type);
    walker.put("truncated", content.truncated);
    walker.put("content", content.content);
    walker.put(json::Field("contentUrl", "content_url"), content.content_url);
    walker.put(json::Field("contentLength", "content_length"), content.content_length);
    walker.put(json::Field("expiresAt", "expires_at"), content.expires_at);
    walker.put("warnings", content.warnings);
};

}  // namespace opensandbox::sdk::fields
