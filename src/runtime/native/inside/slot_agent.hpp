#pragma once

#include "agent/api/agent.hpp"
#include "agent/code/drivers/warm_interpreter.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/inside/slot_process.hpp"
#include "runtime/native/records/protocol.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// What the process that becomes a sandbox's agent does in a slot and in gVisor's kernel alike. It
/// answers on control_descriptor.
namespace opensandbox::runtime::native {

/// What a blank was told to become.
struct Beginning {
    CreateRequest request;
    Activated activated;
    UniqueFd listener;  ///< empty: the agent makes its own
    UniqueFd output;
    std::vector<agent::Publication> publications;
    std::vector<agent::WarmInterpreter> warm;
    bool keep_control = false;  ///< control_descriptor stays open when it is ready
    bool brokered = false;      ///< and is where the agent asks for a broker
};

/// An agent that says SlotReady when a command works, or a FailedReply.
agent::AgentOptions agent_options(Beginning beginning);

Status answer(const Message& message);
[[noreturn]] void fail(std::uint64_t request, const Error& error);
/// The next message, or the end of this process: without its maker a slot has no purpose.
Message next_message(std::vector<UniqueFd>* descriptors);

/// Standard streams that lead nowhere, no signal handling, a session of its own, another command
/// line, no core files.
Status settle_process();

}  // namespace opensandbox::runtime::native
