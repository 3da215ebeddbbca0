#pragma once

#include "base/error.hpp"
#include "model/create_request.hpp"
#include "runtime/runtime.hpp"
#include "store/sandbox_store.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace opensandbox::lifecycle {

/// What this server lets in.
struct AdmissionRules {
    AdmissionRules() = default;
    std::string error_prefix = "NATIVE";              ///< Runtime::error_prefix()
    std::string arch;                                 ///< "amd64" or "arm64"
    runtime::Capabilities capabilities;               ///< Runtime::capabilities()
    std::optional<std::int64_t> max_timeout_seconds;  ///< server.max_sandbox_timeout_seconds
};

/// A request that was let in: what to make, and the row that says so.
struct Admitted {
    Admitted() = default;
    runtime::SandboxSpec spec;
    store::SandboxRecord record;
};

/// The rules beyond the schema, in the contract's order, first failure wins (lifecycle 2.1). What
/// the runtime lacks is refused under the contract's code, naming the field. Pure but for fresh
/// ids.
Result<Admitted> admit(const model::CreateRequest& request, const AdmissionRules& rules,
                       Timestamp now);

/// "amd64" or "arm64": of this machine.
std::string host_arch();

}  // namespace opensandbox::lifecycle
