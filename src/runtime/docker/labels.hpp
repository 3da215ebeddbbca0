#pragma once

#include "runtime/docker/engine/container.hpp"
#include "runtime/runtime.hpp"

#include <optional>
#include <string>
#include <vector>

/// What carries a sandbox through the loss of everything but its container (lifecycle 6.1, 6.7).
/// Pure.
namespace opensandbox::runtime::docker {

/// What a create decided beyond the request.
struct ContainerFacts {
    std::string server_id;
    std::uint16_t agent_port = 0;   ///< host port of 44772; 0: not published
    std::uint16_t http_port = 0;    ///< host port of 8080
    std::string egress_token;       ///< empty: no sidecar
    std::uint16_t egress_port = 0;  ///< host port of the sidecar's 18080
    std::vector<std::string> managed_volumes;
    std::vector<std::string> bucket_mounts;
    StringMap image_labels;  ///< the image's own
};

/// All labels of a sandbox's container. Reserved ones that the image brings (it may be a snapshot)
/// and that are not this sandbox's are blanked.
StringMap make_labels(const SandboxSpec& spec, const ContainerFacts& facts);

/// What labels say.
struct LabelledSandbox {
    std::string id;      ///< empty: no sandbox of anybody
    std::string server;  ///< empty: made by the published server
    bool manual_cleanup = false;
    std::optional<Timestamp> expires_at;
    std::optional<model::Platform> platform;
    std::string snapshot_id;
    std::optional<std::int64_t> renew_seconds;
    StringMap extensions;  ///< keys as the API has them
    StringMap metadata;    ///< the user's
    std::uint16_t agent_port = 0;
    std::uint16_t http_port = 0;
    std::string egress_token;
    std::uint16_t egress_port = 0;
    std::vector<std::string> managed_volumes;
    std::vector<std::string> bucket_mounts;
};

/// Values that do not parse count as absent, as do blank ones.
LabelledSandbox read_labels(const StringMap& labels);

/// `expires-at` as the published server writes it: UTC with `+00:00` and microseconds.
std::string label_time(Timestamp at);

/// A copy with the values of secret labels replaced by `***`.
StringMap without_secrets(StringMap labels);

}  // namespace opensandbox::runtime::docker
