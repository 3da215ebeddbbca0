#pragma once

#include "model/pool.hpp"
#include "store/connection.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::store {

/// One pool as the store keeps it. Its sandboxes are rows of the sandboxes' table.
struct PoolRecord {
    model::Pool pool;
    std::string tenant;
};

/// Every pool. Functions block; thread-safe.
class PoolStore {
  public:
    static Result<std::unique_ptr<PoolStore>> open(std::shared_ptr<Connection> connection);

    Result<std::vector<PoolRecord>> load();
    /// `conflict` when the tenant has one of that name.
    Status insert(const PoolRecord& record);
    /// Capacity and revision.
    Status set_capacity(const PoolRecord& record);
    /// Succeeds when there is no such row.
    Status remove(const std::string& tenant, const std::string& name);

  private:
    explicit PoolStore(std::shared_ptr<Connection> connection)
        : connection_(std::move(connection)) {}
    std::shared_ptr<Connection> connection_;
    Statement insert_, set_capacity_, remove_;
};

}  // namespace opensandbox::store
