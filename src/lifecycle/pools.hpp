#pragma once

#include "base/error.hpp"
#include "model/pool_request.hpp"
#include "net/stream.hpp"

#include <string>
#include <utility>

namespace opensandbox::lifecycle {

/// Named stocks of ready sandboxes (lifecycle 2.9), as the routes ask for them. JSON bodies; 404
/// KUBERNETES::POOL_NOT_FOUND, 409 POOL_ALREADY_EXISTS, 501 POOL_NOT_SUPPORTED where the runtime
/// has no pools.
class Pools {
  public:
    /// Tenant and name.
    using Key = std::pair<std::string, std::string>;

    virtual ~Pools() = default;
    [[nodiscard]] virtual Status supported() const = 0;
    virtual Awaitable<Result<std::string>> create(model::PoolRequest request,
                                                  std::string tenant) = 0;
    [[nodiscard]] virtual Result<std::string> get(const Key& key) const = 0;
    [[nodiscard]] virtual Result<std::string> list(const std::string& tenant) const = 0;
    virtual Awaitable<Result<std::string>> resize(Key key, model::PoolCapacity capacity) = 0;
    /// Its idle sandboxes go with it; those that are somebody's stay.
    virtual Awaitable<Status> remove(Key key) = 0;
};

}  // namespace opensandbox::lifecycle
