#pragma once

#include "base/error.hpp"
#include "egress/policy/effective_policy.hpp"
#include "egress/vault/binding.hpp"

#include <cstdint>
#include <functional>
#include <vector>

/// What bindings must keep together (network contract 1.9). Errors are `invalid_argument` and name
/// the binding.
namespace opensandbox::egress {

struct VaultSettings {
    /// Ports whose connections are intercepted.
    std::vector<std::uint16_t> intercept_ports{80, 443};
    /// OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH: bindings must name their methods
    /// and paths, and not every path.
    bool require_scoped_match = false;
    /// Interception mode credential-bound: TLS is intercepted where a binding wants it, at port 443
    /// alone, and changes say which revision they are of.
    bool credential_bound = false;
    /// Whether connections to (a part of) these hosts are passed through unread; may be empty.
    std::function<bool(const HostPattern&)> passes_through;
};

/// Where TLS is intercepted in mode credential-bound.
inline constexpr std::uint16_t kBoundPort = 443;

/// Credentials exist and can go where they are to go, ports are intercepted, hosts are not passed
/// through, no request matches two bindings at the same precedence of hosts. Names are unique
/// already.
Status check_bindings(const std::vector<Binding>& bindings,
                      const std::vector<Credential>& credentials, const VaultSettings& settings);

/// Every host of a binding is allowed, for each of its ports, by a rule and not by the default
/// action alone: a wildcard by a rule for the same or a wider wildcard. Narrower denials may take
/// parts of a wildcard away.
Status check_coverage(const std::vector<Binding>& bindings, const EffectivePolicy& policy);

}  // namespace opensandbox::egress
