#pragma once

#include "image/store.hpp"
#include "runtime/runtime.hpp"

#include <string>
#include <utility>
#include <vector>

namespace opensandbox::runtime::native {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The image below a sandbox or a snapshot: enough to start from it again.
struct ImageOrigin {
    std::string reference;            ///< as it was requested
    std::string digest;               ///< of what it named then
    std::vector<std::string> layers;  ///< directories, uppermost first
    std::string usr;                  ///< the host's /usr for the built-in image, else empty
    image::ImageConfig config;        ///< its user is resolved inside
};

/// What a sandbox is made of, all choices made: the server's request says it, and it is written
/// down beside the sandbox. Tokens have no place in it.
struct SandboxPlan {
    ImageOrigin image;
    std::vector<std::string> snapshot_layers;  ///< over the image's: names, uppermost first
    Environment environment;                   ///< of its processes: image's and request's, merged
    std::vector<std::string> entrypoint;
    ResourceLimits limits;
    NetworkChoice network;                ///< the shared one's name with its tenant before it
    std::vector<std::string> claims;      ///< named volumes that it uses
    std::vector<std::string> own_claims;  ///< those that go with it
};

}  // namespace opensandbox::runtime::native
