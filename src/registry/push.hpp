#pragma once

#include "registry/pull.hpp"
#include "registry/registries.hpp"

#include <memory>

namespace opensandbox::registry {

/// Sends a stored image to the session's repository: blobs that it has not, three at once, then
/// config and manifest. Layers go in the blobs that they came in where the registry has those (or
/// takes them over from a repository of its own), else packed anew. `details` is shared with work
/// on the pool. `cancelled` soon after the session is to stop.
Awaitable<Result<PushedImage>> push_image(Session& session, Workplace place,
                                          std::shared_ptr<const image::ImageDetails> details,
                                          ProgressListener listener);

}  // namespace opensandbox::registry
