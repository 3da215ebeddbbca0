#pragma once

#include "egress/policy/policy.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// The reply of the /policy routes (network contract 1.1).
struct PolicyStatus {
    std::string_view mode;              ///< see mode_of(); left out when empty, as all
    std::string_view enforcement_mode;  ///< "dns" or "dns+nft"
    std::string_view reason;
    const Policy* policy = nullptr;  ///< of GET only
};

inline constexpr std::string_view kReasonReset = "policy reset to default deny-all";
inline constexpr std::string_view kReasonNoTarget = "no matching targets found";

/// The status of a policy that is in force.
PolicyStatus status_of(const Policy& policy, std::string_view enforcement_mode);

/// One line with a line end.
std::string to_json(const PolicyStatus& status);

}  // namespace opensandbox::egress
