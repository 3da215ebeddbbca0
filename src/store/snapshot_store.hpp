#pragma once

#include "model/snapshot.hpp"
#include "store/connection.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::store {

/// One snapshot as the store keeps it: what the API shows, and what it is made of.
struct SnapshotRecord {
    model::Snapshot snapshot;
    std::string tenant;
    std::string base_image;  ///< the image below it, directly or through other snapshots
    std::string reference;   ///< the backend's own name of it; empty until it is Ready
};

/// Every snapshot. Functions block; thread-safe.
class SnapshotStore {
  public:
    static Result<std::unique_ptr<SnapshotStore>> open(std::shared_ptr<Connection> connection);

    Result<std::vector<SnapshotRecord>> load();
    Status insert(const SnapshotRecord& record);
    /// Status and reference.
    Status set_status(const SnapshotRecord& record);
    /// Succeeds when there is no such row.
    Status remove(const std::string& id);

  private:
    explicit SnapshotStore(std::shared_ptr<Connection> connection)
        : connection_(std::move(connection)) {}
    std::shared_ptr<Connection> connection_;
    Statement insert_, set_status_, remove_;
};

}  // namespace opensandbox::store
