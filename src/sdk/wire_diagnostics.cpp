#include "sdk/wire_diagnostics.hpp"

#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

Result<DiagnosticContent> decode_diagnostic_content(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    DiagnosticContent content;
    content.sandbox_id = in.string("sandboxId");
    content.kind = in.string("kind");
    content.scope = in.string("scope");
    content.delivery = in.string("delivery");
    content.content_type = in.string("contentType");
    content.truncated = in.boolean("truncated");
    content.content = in.optional_string("content");
    content.content_url = in.optional_string("contentUrl");
    content.content_length = in.optional_integer("contentLength");
    content.expires_at = in.optional_time("expiresAt");
    if (json::find(*document, "warnings")) content.warnings = in.strings("warnings");
    if (in.failed()) return in.error();
    return content;
}

}  // namespace opensandbox::sdk::wire
