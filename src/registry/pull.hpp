#pragma once

#include "image/store.hpp"
#include "registry/progress.hpp"
#include "registry/session.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>

namespace opensandbox::registry {

/// What transfers work with; borrowed, outlives them.
struct Workplace {
    Workplace(image::Store& s, asio::thread_pool& p) : store(s), pool(p) {}
    image::Store& store;
    asio::thread_pool& pool;
};

/// Brings the session's image into the store under `reference`: documents, then the layers that the
/// store does not have, three at once, then all is unpacked and named in one step. On failure
/// nothing is left. `cancelled` soon after the session is to stop.
Awaitable<Result<image::ImageInfo>> pull_image(Session& session, Workplace place,
                                               std::string reference, ProgressListener listener);

}  // namespace opensandbox::registry
