#include "runtime/runtime.hpp"

namespace opensandbox::runtime {
namespace {

Error lacking(const Runtime& runtime, std::string_view what) {
    return {ErrorCode::unsupported, "SANDBOX::API_NOT_SUPPORTED",
            std::string(what) + " is not supported by the " + std::string(runtime.error_prefix()) +
                " runtime."};
}

}  // namespace

Awaitable<Status> Runtime::pause(const std::string& /*id*/) {
    co_return lacking(*this, "Pausing");
}

Awaitable<Status> Runtime::resume(const std::string& /*id*/) {
    co_return lacking(*this, "Resuming");
}

Awaitable<Result<SnapshotReference>> Runtime::snapshot(const std::string& /*sandbox_id*/,
                                                       const std::string& /*snapshot_id*/) {
    co_return lacking(*this, "Taking snapshots");
}

Awaitable<Status> Runtime::remove_snapshot(const SnapshotReference& /*snapshot*/) {
    co_return lacking(*this, "Removing snapshots");
}

Awaitable<Result<std::vector<SnapshotReference>>> Runtime::list_snapshots() {
    co_return std::vector<SnapshotReference>();
}

Awaitable<Result<SnapshotContent>> Runtime::open_snapshot(const SnapshotReference& /*snapshot*/) {
    co_return lacking(*this, "Making images of snapshots");
}

Awaitable<Result<SnapshotReference>> Runtime::fork(const std::string& /*sandbox_id*/,
                                                   const std::string& /*fork_id*/) {
    co_return lacking(*this, "Forking");
}

Awaitable<Result<std::vector<SandboxUsage>>> Runtime::usage(std::size_t /*limit*/) {
    co_return std::vector<SandboxUsage>();
}

Awaitable<Result<std::string>> Runtime::logs(const std::string& /*id*/, const LogQuery& /*query*/) {
    co_return lacking(*this, "Reading logs");
}

Awaitable<Result<Inspection>> Runtime::inspect(const std::string& /*id*/) {
    co_return lacking(*this, "Inspecting");
}

}  // namespace opensandbox::runtime
