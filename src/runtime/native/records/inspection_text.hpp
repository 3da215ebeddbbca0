#pragma once

#include "runtime/inspection.hpp"
#include "runtime/native/records/sandbox_description.hpp"

#include <optional>
#include <string>

namespace opensandbox::runtime::native {

/// What the spawner sees of a sandbox that runs or ran.
struct SandboxView {
    std::string id;
    SandboxDescription description;
    std::int64_t pid = 0;
    bool paused = false;
    Usage usage;
    std::string layer;             ///< its slot's directory, for the server itself
    std::string address;           ///< of its own network; empty: it has none
    std::string address6;          ///< likewise
    std::vector<std::string> off;  ///< what it goes without on this host
    std::string published;         ///< host:port where its agent is reached
    std::optional<Exit> exit;
};

std::string format_view(const SandboxView& view);
/// The member `layer` of such a text.
std::string layer_of_view(std::string_view text);
/// `protocol` when the text is not one of ours.
Result<Inspection> parse_view(std::string_view text);

}  // namespace opensandbox::runtime::native
