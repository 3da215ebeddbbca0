#pragma once

#include "egress/policy/effective_policy.hpp"
#include "egress/policy/policy_files.hpp"

#include <string>

/// What the log says of policies (network contract 1.8).
namespace opensandbox::egress {

/// With the policy's warnings.
void log_policy_loaded(const InitialPolicy& initial, const std::string& sandbox_id);
void log_policy_change(const EffectivePolicy& before, const EffectivePolicy& now,
                       const std::string& sandbox_id);

}  // namespace opensandbox::egress
