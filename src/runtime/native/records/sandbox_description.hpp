#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"
#include "runtime/native/records/protocol.hpp"
#include "runtime/native/records/record_fields.hpp"
#include "runtime/native/records/sandbox_plan.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace opensandbox::runtime::native {

/// What a sandbox was made of, kept beside its writable layer: for its snapshots, for those who
/// inspect it, and for a new spawner. Holds no token.
struct SandboxDescription {
    SandboxPlan plan;
    EgressTerms egress;   ///< of copies, as it was when they were made; without token
    PortPairs published;  ///< its ports with those of the host that lead to them
    Timestamp created_at{};
};

SandboxDescription describe(const CreateRequest& request);

std::string format_description(const SandboxDescription& description);
/// invalid_argument names the member.
Result<SandboxDescription> parse_description(std::string_view text);

json::object to_json(const ImageOrigin& origin);
/// invalid_argument names the member.
Result<ImageOrigin> parse_origin(const json::object& object);

/// Two members of a JSON object, absent where nothing is guarded; the token is left out.
void add_egress(const EgressTerms& terms, json::object& out);
/// invalid_argument names the member.
Result<EgressTerms> parse_egress(const json::object& object);

/// Below a slot's directory.
Status write_description(const std::filesystem::path& slot, const SandboxDescription& description);
Result<SandboxDescription> read_description(const std::filesystem::path& slot);

}  // namespace opensandbox::runtime::native
