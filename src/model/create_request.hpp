#pragma once

#include "model/field_error.hpp"
#include "model/json_text.hpp"
#include "model/lifecycle_hooks.hpp"
#include "model/network_policy.hpp"
#include "model/registry_login.hpp"
#include "model/sandbox.hpp"
#include "model/volume.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace opensandbox::model {

/// POST /sandboxes (lifecycle 2.1) after the schema was checked. What a backend may lack is kept,
/// so that it can be refused by name.
struct CreateRequest {
    std::optional<std::string> image;        ///< image.uri; blank counts as absent
    std::optional<std::string> snapshot_id;  ///< blank counts as absent
    std::optional<std::string> template_id;
    std::optional<std::int64_t> timeout_seconds;  ///< 60 or more; empty: removed by hand only
    StringMap resource_limits;
    StringMap resource_requests;
    StringMap env;  ///< null values dropped
    std::optional<StringMap> metadata;
    std::vector<std::string> entrypoint;  ///< shell-split when it was one word with a space
    StringMap extensions;
    std::optional<Platform> platform;  ///< trimmed, lower case
    std::vector<Volume> volumes;
    std::optional<RegistryLogin> image_auth;
    std::optional<NetworkPolicy> network_policy;
    std::optional<LifecycleHooks> hooks;
    bool credential_proxy = false;
    bool credential_bound = false;  ///< of credentialProxy.interceptionMode
    bool secure_access = false;
};

/// Reads a body; on failure every broken rule.
std::variant<CreateRequest, FieldErrors> parse_create_request(std::string_view body);

/// Splits like a POSIX shell reads words: blanks, single and double quotes, backslashes. Empty when
/// a quote is not closed.
std::optional<std::vector<std::string>> shell_split(std::string_view text);

/// Reads the body of renew-expiration.
std::variant<Timestamp, FieldErrors> parse_renew_request(std::string_view body);

}  // namespace opensandbox::model
