#pragma once

#include "model/field_error.hpp"
#include "model/json_text.hpp"
#include "model/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace opensandbox::model {

/// One volume of a create request; only what decides whether it can be honoured.
struct VolumeRequest {
    VolumeRequest() = default;
    std::string name;
    std::string sub_path;
    std::string backend;  ///< "host", "pvc" or "ossfs"
};

/// POST /sandboxes (lifecycle 2.1) after the schema was checked. What backends may lack is kept, so
/// that it can be refused by name.
struct CreateRequest {
    CreateRequest() = default;

    std::optional<std::string> image;        ///< image.uri; blank counts as absent
    std::optional<std::string> snapshot_id;  ///< blank counts as absent
    std::optional<std::string> template_id;
    std::optional<std::int64_t> timeout_seconds;  ///< 60 or more; empty: removed by hand only
    StringMap resource_limits;
    StringMap env;  ///< null values dropped
    std::optional<StringMap> metadata;
    std::vector<std::string> entrypoint;  ///< shell-split when it was one word with a space
    StringMap extensions;
    std::optional<Platform> platform;  ///< trimmed, lower case
    std::vector<VolumeRequest> volumes;
    bool has_image_auth = false;
    bool has_network_policy = false;
    bool credential_proxy = false;
    bool secure_access = false;
    bool has_lifecycle_hooks = false;
};

/// Reads a body; on failure every broken rule.
std::variant<CreateRequest, FieldErrors> parse_create_request(std::string_view body);

/// Splits like a POSIX shell reads words: blanks, single and double quotes, backslashes. Empty when
/// a quote is not closed.
std::optional<std::vector<std::string>> shell_split(std::string_view text);

/// Reads the body of renew-expiration.
std::variant<Timestamp, FieldErrors> parse_renew_request(std::string_view body);

}  // namespace opensandbox::model
