#pragma once

#include "lifecycle/admission.hpp"

#include <optional>
#include <string>
#include <string_view>

/// The single rules of admission (lifecycle 2.1 to 2.8), each for itself. Pure.
namespace opensandbox::lifecycle {

inline constexpr std::string_view kPoolExtension = "poolRef";
/// Any of the tenant's pools that suits.
inline constexpr std::string_view kAnyPool = "*";
inline constexpr std::string_view kRenewExtension = "access.renew.extend.seconds";
inline constexpr std::string_view kIsolationExtension = "bootstrap.execd.isolation";
inline constexpr std::string_view kNetworkExtension = "opensandbox.io/network";
inline constexpr std::string_view kHostnameExtension = "opensandbox.io/hostname";
inline constexpr std::string_view kPublishExtension = "opensandbox.io/publish";
inline constexpr std::string_view kMemoryExtension = "opensandbox.io/tmpfs";
/// What begins so changes how a sandbox is made.
inline constexpr std::string_view kOwnExtension = "opensandbox.io/";
inline constexpr std::string_view kShownExtension = "opensandbox.extensions.";

/// 400 SANDBOX::INVALID_PARAMETER.
Error invalid_parameter(std::string message);
/// The same for what the runtime of these rules cannot do.
Error lacking(std::string_view field, const AdmissionRules& rules);

/// Null when the key is not there.
const std::string* find_value(const model::StringMap& map, std::string_view key);
bool is_blank(std::string_view text);

/// access.renew.extend.seconds: 300 to 86400 seconds.
Result<std::optional<std::int64_t>> renew_extension(const model::CreateRequest& request);
/// The extensions that are shown again: opensandbox.extensions.*.
model::StringMap shown_extensions(const model::CreateRequest& request);
bool wants_isolation(const model::CreateRequest& request);

/// An argument, or a variable with its value, must fit into an exec.
Status check_argument(std::string_view what, std::string_view text);
Status check_hooks(const model::CreateRequest& request, const AdmissionRules& rules);
Status check_entrypoint(const std::vector<std::string>& entrypoint, const AdmissionRules& rules);
Status check_env(const model::StringMap& env);
Status check_platform(const model::CreateRequest& request, const AdmissionRules& rules);
Result<std::optional<Timestamp>> expiry(const model::CreateRequest& request,
                                        const AdmissionRules& rules, Timestamp now);
Result<runtime::ResourceLimits> check_limits(const model::StringMap& wanted,
                                             const AdmissionRules& rules);
/// Refuses extensions under opensandbox.io/ that are not known, and another isolation than
/// "enable".
Status check_extensions(const model::CreateRequest& request);
/// The fine limits (model/resource_limits.hpp), where the runtime has them.
Status check_fine_limits(const model::StringMap& wanted, const AdmissionRules& rules,
                         runtime::ResourceLimits& limits);
/// opensandbox.io/network: "default", "none" or the name of a network, a DNS label; /hostname: a
/// DNS label; /publish: up to 16 different ports, with commas between.
Result<runtime::NetworkChoice> network_choice(const model::CreateRequest& request,
                                              const AdmissionRules& rules);
/// opensandbox.io/tmpfs: up to 8 of path=size, with commas between.
Result<std::vector<runtime::MemoryVolume>> memory_volumes(const model::CreateRequest& request,
                                                          const AdmissionRules& rules);
/// Names, paths and backends; what they name is the backend's to check.
Status check_volumes(const model::CreateRequest& request, const AdmissionRules& rules);

/// The request's env, apart: what the sandbox sees and what is the sidecar's (lifecycle 6.5).
struct SplitEnv {
    model::StringMap sandbox;
    model::StringMap egress;
    bool dropped = false;  ///< there were sidecar's settings, but there is no policy
};
Result<SplitEnv> split_env(const model::CreateRequest& request);

}  // namespace opensandbox::lifecycle
