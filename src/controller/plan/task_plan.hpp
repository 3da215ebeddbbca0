#pragma once

#include "model/task.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"

#include <cstdint>

namespace opensandbox::controller {

/// The task of replica `index` (kubernetes 2.3): the template's, with the patch of this index,
/// which is a strategic merge patch. `invalid_argument` says what is wrong with either. Pure.
Result<model::Task> task_of(const runtime::kubernetes::BatchSandbox& batch, std::int64_t index);

}  // namespace opensandbox::controller
