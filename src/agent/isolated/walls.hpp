#pragma once

#include "agent/isolated/config.hpp"
#include "agent/isolated/request.hpp"
#include "agent/process/enclosure.hpp"

namespace opensandbox::agent {

/// What runs of a profile may keep: none (strict), or what package managers and daemons need and
/// nothing over the kernel (balanced); in both what the configuration adds.
std::uint64_t kept_capabilities(IsolationProfile profile, const IsolationConfig& config);

/// A filter that refuses the system calls with which namespaces, mounts, the kernel and its keys
/// are changed, and those of `denied`; clone3, whose flags it cannot see, is answered as unknown.
/// `invalid_argument` for a name that is no system call.
Result<std::vector<sock_filter>> compile_deny_filter(const std::vector<std::string>& denied);

/// Capabilities and filter of a profile, without namespaces.
Result<Enclosure> walls_of(IsolationProfile profile, const IsolationConfig& config);

}  // namespace opensandbox::agent
