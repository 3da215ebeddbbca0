#pragma once

#include "net/stream.hpp"

#include <functional>
#include <memory>

namespace opensandbox::registry {

/// Runs job(0) to job(count - 1), at most `width` at once, and waits for all that began. After the
/// first failure, which is returned, none begins any more and `*stop` is true, so that the others
/// may end early.
Awaitable<Status> run_in_parallel(asio::any_io_executor executor, std::size_t count,
                                  std::size_t width,
                                  std::function<Awaitable<Status>(std::size_t)> job,
                                  std::shared_ptr<bool> stop);

}  // namespace opensandbox::registry
