#pragma once

#include "runtime/runtime.hpp"

#include <string>
#include <string_view>

/// How a sandbox was guarded, in a label of its snapshot's image: what starts from it is guarded
/// alike. Pure. Labels are of objects that only the engine's administrator can change.
namespace opensandbox::runtime::docker {

/// For the sidecar's label: what a create asks of it beside the policy, which changes.
std::string describe_egress(const SandboxSpec& spec);

/// For the image's label: what the sidecar's label says (one of another program has none) and the
/// policy of this moment, from the sidecar's answer to `GET /policy`. `bad_gateway` when either
/// cannot be read.
Result<std::string> remember_egress(std::string_view sidecar_label, std::string_view answer);

/// Gives the request what the image's label says. `bad_gateway` when that cannot be read: without
/// it the sandbox would not be guarded.
Status guard_alike(std::string_view image_label, SandboxSpec& spec);

/// A line of a Dockerfile that sets a label to any text.
std::string label_instruction(std::string_view name, std::string_view text);

}  // namespace opensandbox::runtime::docker
