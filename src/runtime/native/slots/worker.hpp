#pragma once

#include "base/unique_fd.hpp"
#include "runtime/native/host/host.hpp"

#include <sys/types.h>

namespace opensandbox::runtime::native {

/// A process that makes and removes slots, so that the spawner itself never waits for the kernel.
/// It steps back for others (nice), holds no secret, and ends when its socket does.
struct Worker {
    pid_t pid = 0;
    UniqueFd socket;  ///< MakeSlot, … go in, one at a time; SlotMade, … come out
};

/// Forks one. The caller must have one thread.
Result<Worker> start_worker(const Host& host);

/// Makes a fresh child of the spawner such a process: keeps of its descriptors only `socket`, whose
/// number it returns, restores signals and steps back for others.
Result<int> become_worker(const Host& host, UniqueFd socket);

/// Waits until no worker of an earlier spawner runs here any more, so that nothing is made behind
/// the back of a new one. `timeout` after ten seconds.
Status await_earlier_workers(const SpawnerOptions& options);

}  // namespace opensandbox::runtime::native
