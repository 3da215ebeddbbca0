#include "egress/settings/names.hpp"
#include "egress/settings/table.hpp"
#include "lifecycle/admission_checks.hpp"

namespace opensandbox::lifecycle {

namespace setting = egress::setting;

Result<SplitEnv> split_env(const model::CreateRequest& request) {
    SplitEnv split;
    for (const auto& entry : request.env) {
        if (!entry.first.starts_with(setting::kPrefix)) {
            split.sandbox.push_back(entry);
            continue;
        }
        if (!request.network_policy) {
            split.dropped = true;
            continue;
        }
        const egress::Setting* known = egress::find_setting(entry.first);
        if (!known || !known->is_open_to_requests()) {
            return invalid_parameter("env." + entry.first +
                                     ": must not be set by a request; of the egress settings only "
                                     "a few are.");
        }
        if (entry.first == setting::kInsecure && request.credential_proxy) {
            return invalid_parameter("env." + entry.first +
                                     ": must not be combined with credentialProxy.");
        }
        if (entry.first == setting::kExtraPorts && request.credential_bound) {
            return invalid_parameter(
                "env." + entry.first +
                ": must not be combined with credentialProxy.interceptionMode credential-bound.");
        }
        split.egress.push_back(entry);
        // The sandbox waits for the sidecar's certificate by it.
        if (entry.first == setting::kTransparent) split.sandbox.push_back(entry);
    }
    return split;
}

}  // namespace opensandbox::lifecycle
