#pragma once

#include "agent/isolated/isolation.hpp"

namespace opensandbox::agent {

/// Of all routes for isolation, the one that answers also where there is none.
inline constexpr std::string_view kCapabilitiesPath = "/v1/isolated/capabilities";

/// Body of GET /v1/isolated/capabilities: what was found out by trying, nothing assumed.
std::string capabilities_json(const Isolation::Abilities& abilities, const IsolationConfig& config,
                              bool init);

}  // namespace opensandbox::agent
