#pragma once

#include "image/manifest.hpp"
#include "image/store.hpp"
#include "registry/progress.hpp"
#include "registry/registries.hpp"
#include "registry/session.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>
#include <string>

namespace opensandbox::registry {

/// An image as its registry describes it, for this machine's platform.
struct RemoteImage {
    std::string digest;  ///< "sha256:…" of the manifest, after an index the one chosen from it
    image::ImageDocuments documents;
    image::ImageManifest manifest;
    image::ConfigDocument config;
};

/// Fetches manifest and config of the session's image and checks digests, sizes and platform.
/// `not_found`, `unsupported` (other platforms only, or a kind of image that is unknown),
/// `invalid_argument` when a document breaks a rule.
Awaitable<Result<RemoteImage>> fetch_image(Session& session);

/// What transfers work with; borrowed, outlives them.
struct Workplace {
    image::Store& store;
    asio::thread_pool& pool;
};

/// Brings the session's image into the store under `reference`: documents, then the layers that the
/// store does not have, three at once, then all is unpacked and named in one step. On failure
/// nothing is left. `cancelled` soon after the session is to stop.
Awaitable<Result<image::ImageInfo>> pull_image(Session& session, Workplace place,
                                               std::string reference, ProgressListener listener);

/// Sends a stored image to the session's repository: blobs that it has not, three at once, then
/// config and manifest. Layers go in the blobs that they came in where the registry has those (or
/// takes them over from a repository of its own), else packed anew. `details` is shared with work
/// on the pool. `cancelled` soon after the session is to stop.
Awaitable<Result<PushedImage>> push_image(Session& session, Workplace place,
                                          std::shared_ptr<const image::ImageDetails> details,
                                          ProgressListener listener);

}  // namespace opensandbox::registry
