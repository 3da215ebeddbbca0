#pragma once

#include "runtime/docker/engine/image.hpp"

#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// An image reference as POST /images/create takes it.
struct PullReference {
    PullReference() = default;
    std::string name;
    std::string tag;  ///< tag or "sha256:…"
};

/// A reference without tag and digest means its tag "latest"; with both, the digest decides. Pure.
PullReference split_reference(std::string_view image);

/// The value of X-Registry-Auth: URL-safe base64 of a JSON document. Where `auth` names no server
/// the registry of `image` stands for it. Pure.
std::string registry_auth_header(const RegistryAuth& auth, std::string_view image);

}  // namespace opensandbox::runtime::docker
