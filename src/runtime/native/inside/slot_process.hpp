#pragma once

#include "agent/api/agent.hpp"
#include "agent/code/drivers/warm_interpreter.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/records/protocol.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace opensandbox::runtime::native {

/// Where the control socket is in a slot's process: the lowest free descriptor after the standard
/// three.
inline constexpr int kControlDescriptor = 3;

/// The life of a slot, in the process cloned for it: once there are SlotTerms for it, starts
/// `program`, this executable (ground/kernel/own_program.hpp), anew in the role `slot`.
[[noreturn]] void run_slot(int program, UniqueFd control);

/// The hidden role `slot`: takes its SlotTerms, turns blank, says BlankReady, waits for a
/// CreateRequest with descriptors {listener, overlay, output log[, overlay of /usr], volumes…,
/// listeners of published ports…},
/// turns into that sandbox, runs the agent and ends with its code. Where the request names programs
/// to start ahead and no sandbox, it starts them, says WarmReady and waits for a second
/// CreateRequest, which says whose it is. Every failure is answered with a FailedReply that names
/// the step; the end of the control socket ends a slot that is nobody's.
int slot_main(int argc, char** argv);

/// The first half: from a fresh process in new namespaces to a blank that sees nothing of the host.
Status become_blank(const SlotTerms& terms);

/// The second half, up to and without the agent: takes the root, fences itself in.
struct Activation {
    UniqueFd root;
    UniqueFd usr;                   ///< empty unless the image is the host's
    std::vector<UniqueFd> volumes;  ///< in the request's order; empty: in memory
};
struct Activated {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string home;
    /// What of the environment goes without saying, under the request's.
    [[nodiscard]] Environment environment(const CreateRequest& request) const;
};
Result<Activated> become_sandbox(const SlotTerms& terms, const CreateRequest& request,
                                 Activation parts);
/// Its parts, for slots under gVisor, too. The image's root on /new, with the host's /usr on it:
/// returns a descriptor of it.
Result<UniqueFd> attach_root(const Activation& parts);
/// hosts and hostname in /files.
Status write_names(const SlotTerms& terms, const std::string& hostname);
/// The sandbox's end of its link; the host has set its own.
Status limit_network(const CreateRequest& request);
/// Whose processes these are, and what they may do from here on: nothing can be undone.
Result<Activated> confine(const CreateRequest& request, std::span<const sock_filter> filter);
/// Writes the names of a sandbox whose slot was already one without a name.
Status take_names(const SlotTerms& terms, const CreateRequest& request);

// The process that becomes a sandbox's agent does the rest in a slot and in gVisor's kernel alike.

/// What a blank was told to become.
struct Beginning {
    CreateRequest request;
    Activated activated;
    UniqueFd listener;  ///< empty: the agent makes its own
    UniqueFd output;
    std::vector<agent::Publication> publications;
    std::vector<agent::WarmInterpreter> warm;
    bool keep_control = false;  ///< kControlDescriptor stays open when it is ready
    bool brokered = false;      ///< and is where the agent asks for a broker
};

/// An agent that says SandboxReady when a command works, or a FailedReply.
agent::AgentOptions agent_options(Beginning beginning);

/// By kControlDescriptor.
Status answer(const Message& message);
[[noreturn]] void fail(std::uint64_t request, const Error& error);
/// The next message, or the end of this process: without its maker a slot has no purpose.
Message next_message(std::vector<UniqueFd>* descriptors);

/// Standard streams that lead nowhere, no signal handling, a session of its own, another command
/// line, no core files.
Status settle_process();

}  // namespace opensandbox::runtime::native
