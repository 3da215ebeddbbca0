#pragma once

#include "base/error.hpp"
#include "lifecycle/snapshot_index.hpp"
#include "net/stream.hpp"
#include "runtime/runtime.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// The life of snapshots (lifecycle 4): accepted at once, taken in the background; reads come from
/// memory. Runs on one event loop.
class Snapshots {
  public:
    virtual ~Snapshots() = default;

    /// The new snapshot, Creating. The sandbox must be Running (409
    /// SNAPSHOT::INVALID_SOURCE_STATE).
    struct Accepted {
        std::string id;
        std::string json;
    };
    virtual Awaitable<Result<Accepted>> create(std::string sandbox_id,
                                               std::optional<std::string> name) = 0;
    /// `SNAPSHOT::NOT_FOUND`, also for another tenant's. The JSON is valid until the next
    /// suspension.
    [[nodiscard]] virtual Result<std::string_view> get(std::string_view id,
                                                       std::string_view tenant) const = 0;
    [[nodiscard]] std::string list(const SnapshotQuery& query) const { return index().list(query); }
    /// 409 while it is being taken, and while something is made from it; then it stays Deleting and
    /// is tried again from time to time.
    virtual Awaitable<Status> remove(std::string id, std::string tenant) = 0;
    /// One that is taken apart; nobody removes it as long as this lives.
    struct Opened {
        std::shared_ptr<void> held;
        runtime::SnapshotContent content;
    };
    /// 404 unknown, 409 not Ready or nothing to start from, and the errors of
    /// Runtime::open_snapshot().
    virtual Awaitable<Result<Opened>> open(std::string id, std::string tenant) = 0;
    [[nodiscard]] virtual const SnapshotIndex& index() const = 0;
};

}  // namespace opensandbox::lifecycle
