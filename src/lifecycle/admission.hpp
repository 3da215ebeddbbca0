#pragma once

#include "base/error.hpp"
#include "model/create_request.hpp"
#include "runtime/runtime.hpp"
#include "store/sandbox_store.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::lifecycle {

/// What this server lets in.
struct AdmissionRules {
    std::string error_prefix = "NATIVE";              ///< Runtime::error_prefix()
    std::string arch;                                 ///< "amd64" or "arm64"
    runtime::Capabilities capabilities;               ///< Runtime::capabilities()
    std::optional<std::int64_t> max_timeout_seconds;  ///< server.max_sandbox_timeout_seconds
};

/// A request that was let in: what to make, and the row that says so.
struct Admitted {
    runtime::SandboxSpec spec;
    store::SandboxRecord record;
    std::vector<std::string> warnings;  ///< what was accepted but may not be meant
};

/// Finds the snapshot to start from, or says why it cannot be used (lifecycle 1.5: SNAPSHOT::…).
using FindSnapshot = std::function<Result<store::SnapshotRecord>(const std::string& id)>;

/// The rules beyond the schema, in the contract's order, first failure wins (lifecycle 2.1). What
/// the runtime lacks is refused under the contract's code, naming the field. Pure but for fresh
/// ids.
Result<Admitted> admit(const model::CreateRequest& request, const AdmissionRules& rules,
                       Timestamp now, const FindSnapshot& find_snapshot = {});

/// The name of the pool that `extensions.poolRef` asks for; empty when it asks for none.
std::string_view pool_of(const model::CreateRequest& request);

/// "amd64" or "arm64": of this machine.
std::string host_arch();

}  // namespace opensandbox::lifecycle
