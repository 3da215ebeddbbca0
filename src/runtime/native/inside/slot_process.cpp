#include "runtime/native/inside/slot_process.hpp"

#include "agent/api/agent.hpp"
#include "base/program_text.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/own_program.hpp"
#include "runtime/native/inside/gvisor_slot.hpp"
#include "runtime/native/inside/slot_agent.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr std::chrono::seconds program_timeout{60};

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
Beginning begin(const SlotTerms& terms) {
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
    auto activated = become_sandbox(terms, *request, std::move(parts));
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
    auto programs = model::parse_warm_programs(beginning.request.warm);
    if (!programs) fail(0, programs.error());
    agent::WarmInterpreter::Place place;
    place.environment = agent::Environment(beginning.activated.environment(beginning.request));
    const std::string& directory = beginning.request.working_directory;
    struct stat info{};
    if (!directory.empty() && ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
        place.directory = directory;
    place.uid = beginning.activated.uid;
    place.gid = beginning.activated.gid;
    for (const model::WarmProgram& program : *programs) {
        auto started = agent::WarmInterpreter::start(program, place, program_timeout);
        if (!started) fail(0, started.error());
        beginning.warm.push_back(std::move(*started));
    }
}

/// Maps what of this program is in memory anyway: page by page, while somebody waits, it costs a
/// third of a millisecond.
void map_program() {
    const std::span<const char> text = program_text();
    // Older kernels do not know it, and then it is as it was.
    (void)::madvise(const_cast<char*>(text.data()), text.size(), MADV_POPULATE_READ);
}

/// Waits for the sandbox that this will be.
void await_owner(const SlotTerms& terms, Beginning& beginning) {
    map_program();
    if (!answer(SlotReady{})) ::_exit(1);
    Message message = next_message(nullptr);
    auto* request = std::get_if<CreateRequest>(&message);
    if (!request || request->id.empty()) {
        fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    }
    beginning.request = std::move(*request);
    if (auto s = take_names(terms, beginning.request); !s) {
        fail(beginning.request.request, s.error());
    }
}

}  // namespace

void run_slot(int program, UniqueFd control) {
    auto own = keep_for_new_program(std::array{control.get()}, program);
    if (!own) ::_exit(1);
    (void)control.release();
    if (!await_message(control_descriptor)) ::_exit(0);
    // Its ids are mapped now. Only root keeps its capabilities in the program that follows.
    if (::setresgid(0, 0, 0) < 0 || ::setresuid(0, 0, 0) < 0) fail(0, last_error("set ids"));
    fail(0, start_anew(*own, "slot"));
}

int slot_main(int, char**) {
    if (!adopt_descriptors(1)) return 2;
    if (auto status = settle_process(); !status) fail(0, status.error());
    const Message message = next_message(nullptr);
    const auto* terms = std::get_if<SlotTerms>(&message);
    if (!terms) fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    // The maker connects its network, then says so.
    std::vector<UniqueFd> programs;
    (void)next_message(&programs);
    if (auto status = become_blank(*terms); !status) fail(0, status.error());
    if (!answer(SlotReady{})) return 1;
    if (terms->gvisor) run_gvisor_slot(*terms, std::move(programs));

    Beginning beginning = begin(*terms);
    if (beginning.request.id.empty()) {
        start_programs(beginning);
        await_owner(*terms, beginning);
    }
    beginning.brokered = terms->brokers;
    ::_exit(agent::run(agent_options(std::move(beginning))));
}

}  // namespace opensandbox::runtime::native
