#include "runtime/native/slot/slot_process.hpp"

#include "agent/agent.hpp"
#include "runtime/native/gvisor/gvisor_slot.hpp"
#include "runtime/native/kernel/kernel.hpp"
#include "runtime/native/slot/broker_process.hpp"
#include "runtime/native/slot/slot_agent.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>

/// Set by the linker: where this program's text begins and ends.
extern "C" {
extern const char __executable_start;
extern const char etext;
}

namespace opensandbox::runtime::native {

namespace {

constexpr std::chrono::seconds program_timeout{60};

/// Gives this process a stack protector's value of its own: all slots are forked from one process,
/// and what a sandbox learns of its agent would hold for every other. Functions that were entered
/// before must not return.
__attribute__((no_stack_protector)) void renew_stack_guard() {
#ifdef __x86_64__
    std::uintptr_t guard = 0;
    if (::getrandom(&guard, sizeof guard, GRND_NONBLOCK) != sizeof guard) return;
    // Its first byte ends a string.
    guard &= ~std::uintptr_t{0xff};
    asm volatile("movq %0, %%fs:0x28" : : "r"(guard));
#endif
}

/// Undoes what this process inherited: descriptors, signal handling, session.
Status forget_parent(UniqueFd control) {
    if (control.get() != control_descriptor) {
        if (::dup3(control.get(), control_descriptor, O_CLOEXEC) < 0) return last_error("dup3");
    } else {
        (void)control.release();
    }
    ::close_range(control_descriptor + 1, ~0U, 0);
    return settle_process();
}

bool has_source(const VolumeMount& volume) {
    return !volume.source.empty();
}

/// Listeners in the host's network that the agent hands on to ports of the sandbox.
std::vector<agent::Publication> publications(const CreateRequest& request,
                                             std::vector<UniqueFd>& descriptors) {
    std::vector<agent::Publication> out;
    const std::size_t first = descriptors.size() - request.published.size();
    for (std::size_t i = 0; i < request.published.size(); ++i) {
        out.emplace_back(std::move(descriptors[first + i]),
                         static_cast<std::uint16_t>(request.published[i]));
    }
    return out;
}

/// From a blank to a sandbox without an agent.
Beginning begin(const Host& host, SlotId slot) {
    std::vector<UniqueFd> descriptors;
    Message message = next_message(&descriptors);
    auto* request = std::get_if<CreateRequest>(&message);
    if (!request) fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    const std::size_t volumes_at = request->usr.empty() ? 3 : 4;
    const auto from_host =
        static_cast<std::size_t>(std::ranges::count_if(request->volumes, has_source));
    if (descriptors.size() != volumes_at + from_host + request->published.size()) {
        fail(0, Error(ErrorCode::protocol, "slot: unexpected descriptors"));
    }
    Activation parts;
    parts.root = std::move(descriptors[1]);
    if (volumes_at == 4) parts.usr = std::move(descriptors[3]);
    std::size_t next = volumes_at;
    for (const VolumeMount& volume : request->volumes)
        parts.volumes.push_back(has_source(volume) ? std::move(descriptors[next++]) : UniqueFd());
    auto activated = become_sandbox(host, slot, *request, std::move(parts));
    if (!activated) fail(request->request, activated.error());
    Beginning out;
    out.publications = publications(*request, descriptors);
    out.request = std::move(*request);
    out.activated = std::move(*activated);
    out.listener = std::move(descriptors[0]);
    out.output = std::move(descriptors[2]);
    return out;
}

/// Starts the programs that the image declares.
void start_programs(Beginning& beginning) {
    if (beginning.request.warm.empty()) return;
    auto programs = agent::parse_warm_programs(beginning.request.warm);
    if (!programs) fail(0, programs.error());
    agent::WarmInterpreter::Place place;
    place.environment = agent::Environment(beginning.activated.environment(beginning.request));
    const std::string& directory = beginning.request.working_directory;
    struct stat info{};
    if (!directory.empty() && ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
        place.directory = directory;
    place.uid = beginning.activated.uid;
    place.gid = beginning.activated.gid;
    for (const agent::WarmProgram& program : *programs) {
        auto started = agent::WarmInterpreter::start(program, place, program_timeout);
        if (!started) fail(0, started.error());
        beginning.warm.push_back(std::move(*started));
    }
}

/// Maps what of this program is in memory anyway: page by page, while somebody waits, it costs a
/// third of a millisecond.
void map_program() {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(&__executable_start) & ~(page - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(&etext);
    // Older kernels do not know it, and then it is as it was.
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);  // NOLINT
}

/// Waits for the sandbox that this will be.
void await_owner(const Host& host, SlotId slot, Beginning& beginning) {
    map_program();
    if (!answer(SlotReady{})) ::_exit(1);
    Message message = next_message(nullptr);
    auto* request = std::get_if<CreateRequest>(&message);
    if (!request || request->id.empty()) {
        fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    }
    beginning.request = std::move(*request);
    if (auto s = take_names(host, slot, beginning.request); !s) {
        fail(beginning.request.request, s.error());
    }
}

}  // namespace

void run_slot(const Host& host, SlotId slot, UniqueFd control) {
    renew_stack_guard();
    if (auto status = forget_parent(std::move(control)); !status) ::_exit(1);
    // The maker attaches cgroups, ids and the network, then says so.
    std::vector<UniqueFd> programs;
    (void)next_message(&programs);
    if (auto status = become_blank(host, slot); !status) fail(0, status.error());
    if (!answer(SlotReady{})) ::_exit(1);
    if (host.gvisor()) run_gvisor_slot(host, slot, std::move(programs));

    Beginning beginning = begin(host, slot);
    if (beginning.request.id.empty()) {
        start_programs(beginning);
        await_owner(host, slot, beginning);
    }
    beginning.brokered = has_brokers(host);
    ::_exit(agent::run(agent_options(std::move(beginning))));
}

}  // namespace opensandbox::runtime::native
