#pragma once

#include <sys/resource.h>

/// A sandbox's agent may make no namespaces, so isolated sessions are made by a process beside it:
/// the broker (agent/api/broker.hpp), which the host starts when the agent first asks. It is
/// in all namespaces and cgroups of the sandbox, sees none of the host's files, and differs from
/// the sandbox's own processes in two capabilities, which count in the sandbox's user namespace
/// only, and in a dozen system calls. Nothing inside can trace it or read its memory.
namespace opensandbox::runtime::native {

/// In a slot's writable layer, beside what is the sandbox's root: the uppers of its sessions.
inline constexpr const char* kSessionLayer = "i";

/// What a broker needs of the host, made for it while it is still nobody's.
struct BrokerSeed {
    int control = -1;
    int agent = -1;
    int layer = -1;       ///< a detached mount for the uppers of sessions
    int terms = -1;       ///< a socket that SlotTerms come in when it is in its cgroups
    rlimit open_files{};  ///< those of the agent
};

/// The life of a broker, in the process cloned for it: starts `program`, this executable, anew in
/// the role `broker` (ground/kernel/own_program.hpp).
[[noreturn]] void run_broker_process(int program, const BrokerSeed& seed);

/// The hidden role `broker`: tells the agent where it listens, or why it does not.
int broker_main(int argc, char** argv);

}  // namespace opensandbox::runtime::native
