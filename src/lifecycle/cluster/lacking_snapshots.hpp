#pragma once

#include "lifecycle/snapshots.hpp"

/// What sandboxes of a cluster do not have yet: refused by name.
namespace opensandbox::lifecycle {

/// 501 SNAPSHOT::NOT_IMPLEMENTED.
class LackingSnapshots final : public Snapshots {
  public:
    Awaitable<Result<Accepted>> create(std::string sandbox_id,
                                       std::optional<std::string> name) override;
    [[nodiscard]] Result<std::string_view> get(std::string_view id,
                                               std::string_view tenant) const override;
    Awaitable<Status> remove(std::string id, std::string tenant) override;
    Awaitable<Result<Opened>> open(std::string id, std::string tenant) override;
    [[nodiscard]] const SnapshotIndex& index() const override { return index_; }

  private:
    SnapshotIndex index_;
};

}  // namespace opensandbox::lifecycle
