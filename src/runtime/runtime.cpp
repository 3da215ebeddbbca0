#include "runtime/runtime.hpp"

namespace opensandbox::runtime {
namespace {

Error lacking(const Runtime& runtime, std::string_view what) {
    return {ErrorCode::unsupported, "SANDBOX::API_NOT_SUPPORTED",
            std::string(what) + " is not supported by the " + std::string(runtime.error_prefix()) +
                " runtime."};
}

}  // namespace

Awaitable<Status> Runtime::pause(std::string /*id*/) {
    co_return lacking(*this, "Pausing");
}

Awaitable<Status> Runtime::resume(std::string /*id*/) {
    co_return lacking(*this, "Resuming");
}

Awaitable<Result<SnapshotReference>> Runtime::snapshot(std::string /*sandbox_id*/,
                                                       std::string /*snapshot_id*/) {
    co_return lacking(*this, "Taking snapshots");
}

Awaitable<Status> Runtime::remove_snapshot(SnapshotReference /*snapshot*/) {
    co_return lacking(*this, "Removing snapshots");
}

Awaitable<Result<std::vector<SnapshotReference>>> Runtime::list_snapshots() {
    co_return std::vector<SnapshotReference>();
}

Awaitable<Result<SnapshotContent>> Runtime::open_snapshot(SnapshotReference /*snapshot*/) {
    co_return lacking(*this, "Making images of snapshots");
}

Awaitable<Result<SnapshotReference>> Runtime::fork(std::string /*sandbox_id*/,
                                                   std::string /*fork_id*/) {
    co_return lacking(*this, "Forking");
}

Awaitable<Result<std::vector<SandboxUsage>>> Runtime::usage(std::size_t /*limit*/) {
    co_return std::vector<SandboxUsage>();
}

Awaitable<Result<std::string>> Runtime::logs(std::string /*id*/, LogQuery /*query*/) {
    co_return lacking(*this, "Reading logs");
}

Awaitable<Result<Inspection>> Runtime::inspect(std::string /*id*/) {
    co_return lacking(*this, "Inspecting");
}

}  // namespace opensandbox::runtime
