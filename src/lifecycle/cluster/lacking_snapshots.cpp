#include "lifecycle/cluster/lacking_snapshots.hpp"

namespace opensandbox::lifecycle {
namespace {

Error no_snapshots() {
    return {ErrorCode::unsupported, "SNAPSHOT::NOT_IMPLEMENTED",
            "Snapshots are not supported by the kubernetes runtime of this server."};
}

}  // namespace

Awaitable<Result<Snapshots::Accepted>> LackingSnapshots::create(std::string,
                                                                std::optional<std::string>) {
    co_return no_snapshots();
}

Result<std::string_view> LackingSnapshots::get(std::string_view id, std::string_view) const {
    return Error(ErrorCode::not_found, "SNAPSHOT::NOT_FOUND",
                 "Snapshot " + std::string(id) + " not found.");
}

Awaitable<Status> LackingSnapshots::remove(std::string id, std::string tenant) {
    auto found = get(id, tenant);
    co_return found ? Status() : Status(found.error());
}

Awaitable<Result<Snapshots::Opened>> LackingSnapshots::open(std::string id, std::string tenant) {
    co_return get(id, tenant).error();
}

}  // namespace opensandbox::lifecycle
