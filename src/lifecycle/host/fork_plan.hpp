#pragma once

#include "lifecycle/admission.hpp"
#include "model/fork_request.hpp"

#include <string>
#include <vector>

/// What the copies of a sandbox are. Pure but for fresh ids.
namespace opensandbox::lifecycle {

/// The shown extension by which a copy names what it is a copy of. Labels under the reserved prefix
/// are not shown (lifecycle 2.5); extensions are.
inline constexpr std::string_view kForkedFrom = "opensandbox.extensions.forked-from";

/// `count` sandboxes as the source is: image, labels, extensions, entrypoint, limits, platform and
/// life, unless the request says otherwise, under the rules of create. Volumes and hooks are not
/// passed on. They start from the snapshot `fork_id`, which is not made yet.
Result<std::vector<Admitted>> plan_fork(const store::SandboxRecord& source,
                                        const model::ForkRequest& request,
                                        const AdmissionRules& rules, const std::string& fork_id,
                                        Timestamp now);

}  // namespace opensandbox::lifecycle
