#pragma once

#include "base/error.hpp"

#include <cstdint>

/// How a slot reaches the agent in gVisor's kernel, which takes over every link of the network
/// namespace that it is given.
namespace opensandbox::runtime::native {

/// The agent's address on a link between the slot and gVisor alone: it works in every sandbox,
/// also in one without a network, and nothing of it passes the sandbox's own link.
inline constexpr const char* kGvisorAgentAddress = "169.254.77.2";
/// Its port there; those of published ports follow in the request's order.
inline constexpr std::uint16_t kGvisorAgentPort = 44'772;

/// Puts the network namespace of this process, with one end of that link, at gvisor_network_path,
/// and this process into a new one with the other end and nothing else.
Status leave_network();

}  // namespace opensandbox::runtime::native
