#pragma once

#include "agent/isolated/isolation.hpp"

namespace opensandbox::agent {

/// Body of GET /v1/isolated/capabilities: what was found out by trying, nothing assumed.
std::string capabilities_json(const Isolation::Abilities& abilities, const IsolationConfig& config,
                              bool init);

}  // namespace opensandbox::agent
