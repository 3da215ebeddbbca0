#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"
#include "runtime/native/records/image_origin.hpp"
#include "runtime/native/records/protocol.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// What a sandbox was made of, kept beside its writable layer: for its snapshots, for those who
/// inspect it, and for a new spawner. Holds no token.
struct SandboxDescription {
    SandboxDescription() = default;
    ImageOrigin image;
    std::vector<std::string> snapshot_layers;
    Environment environment;  ///< of its processes
    std::vector<std::string> entrypoint;
    ResourceLimits limits;
    std::vector<std::string> claims;      ///< named volumes that it uses
    std::vector<std::string> own_claims;  ///< those that go with it
    std::string hostname;
    std::string network;  ///< shared one, with its tenant; empty: none
    bool no_network = false;
    EgressTerms egress;  ///< of copies, as it was when they were made; without token
    /// Ports of its own with those of the host that lead to them.
    std::vector<std::pair<std::uint16_t, std::uint16_t>> published;
    Timestamp created_at{};
};

SandboxDescription describe(const CreateRequest& request);

std::string format_description(const SandboxDescription& description);
/// invalid_argument names the member.
Result<SandboxDescription> parse_description(std::string_view text);

/// Two members of a JSON object, absent where nothing is guarded; the token is left out.
void add_egress(const EgressTerms& terms, json::object& out);
/// invalid_argument names the member.
Result<EgressTerms> parse_egress(const json::object& object);

/// Below a slot's directory.
Status write_description(const std::filesystem::path& slot, const SandboxDescription& description);
Result<SandboxDescription> read_description(const std::filesystem::path& slot);

}  // namespace opensandbox::runtime::native
