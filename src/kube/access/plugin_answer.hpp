#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "kube/access/cluster.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::kube {

/// What a credential plugin gives: a token, a certificate with its key, or both.
struct PluginAnswer {
    std::string token;
    std::string cert_pem;
    std::string key_pem;
    std::optional<Timestamp> expires_at;  ///< empty: until it is refused
};

/// What a plugin finds in KUBERNETES_EXEC_INFO: an ExecCredential of its version, with the cluster
/// when it wants to know it; of whom that trusts only `ca_pem`. Pure.
std::string plugin_question(const CredentialPlugin& plugin, const Cluster& cluster);

/// Reads the ExecCredential that a plugin wrote. `invalid_argument` names the member that is wrong
/// or missing and never shows what it holds. Pure.
Result<PluginAnswer> read_plugin_answer(std::string_view text, const CredentialPlugin& plugin);

}  // namespace opensandbox::kube
