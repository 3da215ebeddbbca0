#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/host/host.hpp"

#include <sys/types.h>

/// How sandboxes get their brokers (inside/broker_process.hpp).
namespace opensandbox::runtime::native {

/// Whether sandboxes of this host can have one. Not where root inside is root outside: with the
/// right to mount, that would be power over the kernel's settings. Not in an ordinary user's slots,
/// where nobody may enter, nor under gVisor, whose processes are none of ours.
inline bool has_brokers(const Host& host) {
    return !host.options.rootless && !host.gvisor() && host.shift_ids;
}

/// A broker as the spawner holds it, which must reap it: a pid namespace ends only when all that
/// was in it has been reaped.
struct BrokerParts {
    pid_t pid = 0;
    UniqueFd pidfd;
};

/// Starts one, in a worker process, whose parent becomes the broker's. `control` is the spawner's
/// end of the socket of the sandbox's agent, `agent` a pidfd of that and `pid` its number;
/// `program` is this executable (ground/kernel/own_program.hpp).
Result<BrokerParts> start_broker(const Host& host, int program, SlotId slot, int control, int agent,
                                 pid_t pid);

}  // namespace opensandbox::runtime::native
