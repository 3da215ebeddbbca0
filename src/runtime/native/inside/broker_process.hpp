#pragma once

#include "base/unique_fd.hpp"
#include "runtime/native/host/host.hpp"

#include <sys/resource.h>
#include <sys/types.h>

/// A sandbox's agent may make no namespaces, so isolated sessions are made by a process beside it:
/// the broker (agent/isolated/broker.hpp), which the host starts when the agent first asks. It is
/// in all namespaces and cgroups of the sandbox, sees none of the host's files, and differs from
/// the sandbox's own processes in two capabilities, which count in the sandbox's user namespace
/// only, and in a dozen system calls. Nothing inside can trace it or read its memory.
namespace opensandbox::runtime::native {

/// In a slot's writable layer, beside what is the sandbox's root: the uppers of its sessions.
inline constexpr const char* session_layer = "i";

/// Whether sandboxes of this host can have one. Not where root inside is root outside: with the
/// right to mount, that would be power over the kernel's settings. Not in an ordinary user's slots,
/// where nobody may enter, nor under gVisor, whose processes are none of ours.
inline bool has_brokers(const Host& host) {
    return !host.options.rootless && !host.gvisor() && host.shift_ids;
}

/// Between spawner and worker its slot goes by a SlotMade as well: to the worker with the number of
/// the sandbox's agent and {control socket, pidfd} of that, back with the broker's number and
/// pidfd.
///
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

/// What a broker needs of the host, made for it while it is still nobody's.
struct BrokerSeed {
    int control = -1;
    int agent = -1;
    int layer = -1;       ///< a detached mount for the uppers of sessions
    int terms = -1;       ///< a socket that SlotTerms come in when it is in its cgroups
    rlimit open_files{};  ///< those of the agent
};

/// The life of a broker, in the process cloned for it: starts `program` anew in the role `broker`.
[[noreturn]] void run_broker_process(int program, const BrokerSeed& seed);

/// The hidden role `broker`: tells the agent where it listens, or why it does not.
int broker_main(int argc, char** argv);

}  // namespace opensandbox::runtime::native
