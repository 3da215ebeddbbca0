#pragma once

#include "image/manifest.hpp"
#include "registry/session.hpp"

#include <string>

namespace opensandbox::registry {

/// An image as its registry describes it, for this machine's platform.
struct RemoteImage {
    RemoteImage() = default;
    std::string digest;  ///< "sha256:…" of the manifest, after an index the one chosen from it
    image::ImageDocuments documents;
    image::ImageManifest manifest;
    image::ConfigDocument config;
};

/// Fetches manifest and config of the session's image and checks digests, sizes and platform.
/// `not_found`, `unsupported` (other platforms only, or a kind of image that is unknown),
/// `invalid_argument` when a document breaks a rule.
Awaitable<Result<RemoteImage>> fetch_image(Session& session);

}  // namespace opensandbox::registry
