#include "runtime/native/inside/slot_process.hpp"

#include "agent/trust/egress_certificate.hpp"
#include "base/log.hpp"
#include "base/program_text.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/own_program.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/gvisor_slot.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#endif

namespace opensandbox::runtime::native {

namespace {

/// Overwrites the command line that the spawner was started with: it names paths of the host, and
/// everybody inside can read it.
void rename_process(std::string_view name) {
    ::prctl(PR_SET_NAME, "opensandbox");
    const std::string stat = read_file_or_empty("/proc/self/stat");
    // Fields 48 and 49, counted from the one after the command's closing parenthesis, the third.
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string skipped;
    for (int field = 3; field < 48; ++field)
        fields >> skipped;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (!(fields >> begin >> end) || begin == 0 || end <= begin + name.size()) return;
    auto* text = reinterpret_cast<char*>(begin);  // NOLINT: the kernel gives it as a number
    std::memset(text, 0, end - begin);
    std::memcpy(text, name.data(), name.size());
}

/// The process is about to give up its standard error: reports of sanitizers, in a build with them,
/// still go there.
void keep_sanitizer_reports() {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    // Far above what anybody counts on.
    constexpr int kLowest = 200;
    const int kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kLowest);
    if (kept >= 0)
        __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t{kept}));  // NOLINT
#endif
}

/// A hook is named already.
Error explain(const Error& error) {
    if (error.wire().empty()) return error.within("entrypoint");
    return error.as("NATIVE::" + error.wire());
}

/// Whether the entrypoint is only there to wait, as clients send it who need none: the agent waits
/// as well by itself. That is a process and a third of a megabyte less for each such sandbox, and
/// images can be used that have not even that program.
bool only_waits(const std::vector<std::string>& entrypoint) {
    static constexpr std::array<std::string_view, 3> kWait{"tail", "-f", "/dev/null"};
    return std::ranges::equal(entrypoint, kWait);
}

/// What intercepts its HTTPS signs for the servers: its programs are to take that.
void trust_authority(const std::string& authority, Environment& environment) {
    if (authority.empty()) return;
    const agent::EgressCertificate certificate;
    if (!certificate.place(authority)) {
        log::warn("programs cannot trust egress control: its certificate has no place");
        return;
    }
    agent::Environment trusting(environment);
    certificate.trust(trusting);
    environment = trusting.pairs();
}

constexpr std::chrono::seconds kProgramTimeout{60};

bool has_source(const VolumeMount& volume) {
    return !volume.source.empty();
}

/// Listeners in the host's network that the agent hands on to ports of the sandbox.
std::vector<agent::Publication> publications(const std::vector<std::uint16_t>& published,
                                             std::vector<UniqueFd>& descriptors) {
    std::vector<agent::Publication> out;
    const std::size_t first = descriptors.size() - published.size();
    for (std::size_t i = 0; i < published.size(); ++i)
        out.emplace_back(std::move(descriptors[first + i]), published[i]);
    return out;
}

/// From a blank to a sandbox without an agent.
Beginning begin(const SlotTerms& terms) {
    std::vector<UniqueFd> descriptors;
    Message message = next_message(&descriptors);
    auto* request = std::get_if<CreateRequest>(&message);
    if (!request) fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    const std::size_t volumes_at = request->plan.image.usr.empty() ? 3 : 4;
    const auto from_host =
        static_cast<std::size_t>(std::ranges::count_if(request->volumes, has_source));
    if (descriptors.size() != volumes_at + from_host + request->plan.network.published.size()) {
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
    out.publications = publications(request->plan.network.published, descriptors);
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
    const std::string& directory = beginning.request.plan.image.config.working_directory;
    struct stat info{};
    if (!directory.empty() && ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
        place.directory = directory;
    place.uid = beginning.activated.uid;
    place.gid = beginning.activated.gid;
    for (const model::WarmProgram& program : *programs) {
        auto started = agent::WarmInterpreter::start(program, place, kProgramTimeout);
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
    if (!answer(WarmReady{})) ::_exit(1);
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

Status settle_process() {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return last_error("open /dev/null");
    keep_sanitizer_reports();
    for (const int fd : {0, 1, 2})
        ::dup2(null, fd);
    ::close(null);
    reset_signals();
    ::setsid();
    ::umask(022);
    rename_process("opensandbox exec");
    // 1 and not 0: where core_pattern names a program the kernel starts it at every other limit, as
    // root of the host. The filter keeps it there.
    const rlimit no_core{1, 1};
    return check(::setrlimit(RLIMIT_CORE, &no_core), "limit core files");
}

Status answer(const Message& message) {
    return send_message(kControlDescriptor, encode(message));
}

void fail(std::uint64_t request, const Error& error) {
    (void)answer(FailedReply{request, error});
    ::_exit(1);
}

Message next_message(std::vector<UniqueFd>* descriptors) {
    auto received = receive_message(kControlDescriptor);
    if (!received || received->closed) ::_exit(0);
    auto message = decode(received->bytes);
    if (!message) fail(0, message.error());
    if (descriptors) *descriptors = std::move(received->descriptors);
    ::explicit_bzero(received->bytes.data(), received->bytes.size());
    return std::move(*message);
}

agent::AgentOptions agent_options(Beginning beginning) {
    CreateRequest& request = beginning.request;
    agent::AgentOptions options;
    options.listener = std::move(beginning.listener);
    options.output_log = std::move(beginning.output);
    options.publications = std::move(beginning.publications);
    options.warm = std::move(beginning.warm);
    options.access_token = std::move(request.agent_token);
    options.environment = beginning.activated.environment(request);
    trust_authority(request.authority, options.environment);
    options.working_directory = std::move(request.plan.image.config.working_directory);
    options.uid = beginning.activated.uid;
    options.gid = beginning.activated.gid;
    options.init = true;
    if (!only_waits(request.plan.entrypoint))
        options.entrypoint = std::move(request.plan.entrypoint);
    options.hooks = std::move(request.hooks);
    if (beginning.brokered) options.isolation_host = kControlDescriptor;
    options.on_ready = [number = request.request,
                        keep = beginning.keep_control || beginning.brokered](const Status& status) {
        if (!status) fail(number, explain(status.error()));
        // Nobody would know of a sandbox whose spawner died meanwhile.
        if (!answer(SandboxReady{})) ::_exit(1);
        if (!keep) ::close(kControlDescriptor);
    };
    return options;
}

void run_slot(int program, UniqueFd control) {
    auto own = keep_for_new_program(std::array{control.get()}, program);
    if (!own) ::_exit(1);
    (void)control.release();
    if (!await_message(kControlDescriptor)) ::_exit(0);
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
    if (!std::holds_alternative<BecomeBlank>(next_message(&programs)))
        fail(0, Error(ErrorCode::protocol, "slot: unexpected message"));
    if (auto status = become_blank(*terms); !status) fail(0, status.error());
    if (!answer(BlankReady{})) return 1;
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
