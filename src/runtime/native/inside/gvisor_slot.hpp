#pragma once

#include "base/unique_fd.hpp"
#include "runtime/native/records/protocol.hpp"

#include <vector>

namespace opensandbox::runtime::native {

/// A blank under gVisor: waits for a CreateRequest as slot_main() does, with a file for
/// gvisor_end_file after the output log, runs `runsc` in its own namespaces, hands connections on
/// to the agent inside, and ends with its code. `programs` are those of GvisorPrograms.
[[noreturn]] void run_gvisor_slot(const SlotTerms& terms, std::vector<UniqueFd> programs);

/// The hidden role `guest`: process 1 in gVisor's kernel. Becomes the sandbox's agent; says
/// SandboxReady and, when the entrypoint ended, a DoneReply with its code.
int guest_main(int argc, char** argv);

/// What both say to each other: descriptors of the guest beside control_descriptor.
inline constexpr int kGuestRequest = 4;  ///< a file with format_guest_request()
inline constexpr int kGuestOutput = 5;

/// What a guest has to know: the request without what concerns the host only, and the filter of
/// system calls.
std::string format_guest_request(CreateRequest request, const std::vector<sock_filter>& filter);
struct GuestRequest {
    CreateRequest request;
    std::vector<sock_filter> filter;
};
Result<GuestRequest> parse_guest_request(std::string_view text);

}  // namespace opensandbox::runtime::native
