#pragma once

#include "runtime/native/records/protocol.hpp"
#include "runtime/runtime.hpp"

namespace opensandbox::runtime::native {

/// What egress control is told of a sandbox. Without networkPolicy what guarded its source holds,
/// for copies and for what starts from a snapshot; else nothing. invalid_argument with wire names
/// what must not be combined (lifecycle 6.5). Leaves the token out. Pure.
Result<EgressTerms> plan_egress(const SandboxSpec& spec, const EgressTerms& source,
                                const Environment& host);

/// Whether it wants its HTTPS intercepted.
bool is_intercepted(const EgressTerms& terms);
/// "all" or "credential-bound"; empty when it is not intercepted.
std::string interception_mode(const EgressTerms& terms);

}  // namespace opensandbox::runtime::native
