#include "runtime/native/slot_process.hpp"

#include "agent/agent.hpp"
#include "agent/code/warm_interpreter.hpp"
#include "runtime/native/kernel.hpp"
#include "runtime/native/message_socket.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr std::chrono::seconds program_timeout{60};

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

/// Undoes what this process inherited: descriptors, signal handling, session.
Status forget_parent(UniqueFd control) {
    if (control.get() != control_descriptor) {
        if (::dup3(control.get(), control_descriptor, O_CLOEXEC) < 0) return last_error("dup3");
    } else {
        (void)control.release();
    }
    ::close_range(control_descriptor + 1, ~0U, 0);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return last_error("open /dev/null");
    for (const int fd : {0, 1, 2})
        ::dup2(null, fd);
    ::close(null);
    for (int number = 1; number < NSIG; ++number)
        ::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setsid();
    ::umask(022);
    rename_process("opensandbox exec");
    return {};
}

bool has_source(const VolumeMount& volume) {
    return !volume.source.empty();
}

Status answer(const Message& message) {
    return send_message(control_descriptor, encode(message));
}

[[noreturn]] void fail(std::uint64_t request, const Error& error) {
    (void)answer(FailedReply{request, error});
    ::_exit(1);
}

/// The next message, or the end of this process: without its maker a blank has no purpose.
Message next_message(std::vector<UniqueFd>* descriptors) {
    auto received = receive_message(control_descriptor);
    if (!received || received->closed) ::_exit(0);
    auto message = decode(received->bytes);
    if (!message) fail(0, message.error());
    if (descriptors) *descriptors = std::move(received->descriptors);
    ::explicit_bzero(received->bytes.data(), received->bytes.size());
    return std::move(*message);
}

/// A hook is named already.
Error explain(const Error& error) {
    if (error.wire().empty()) return error.within("entrypoint");
    return error.as("NATIVE::" + error.wire());
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

/// Whether the entrypoint is only there to wait, as clients send it who need none, and the image
/// has not even that program: the agent then waits by itself, as an image without a shell can be
/// used.
bool waits_without_program(const std::vector<std::string>& entrypoint,
                           const Environment& environment) {
    static constexpr std::array<std::string_view, 3> kWait{"tail", "-f", "/dev/null"};
    if (!std::ranges::equal(entrypoint, kWait)) return false;
    for (const auto& [name, value] : environment) {
        if (name != "PATH") continue;
        std::string_view rest = value;
        while (!rest.empty()) {
            const std::string directory(rest.substr(0, rest.find(':')));
            rest.remove_prefix(std::min(rest.size(), directory.size() + 1));
            if (::access((directory + "/tail").c_str(), X_OK) == 0) return false;
        }
    }
    return true;
}

/// What a blank was told to become.
struct Beginning {
    CreateRequest request;
    Activated activated;
    UniqueFd listener;
    UniqueFd output;
    std::vector<agent::Publication> publications;
    std::vector<agent::WarmInterpreter> warm;
};

agent::AgentOptions agent_options(Beginning beginning) {
    CreateRequest& request = beginning.request;
    agent::AgentOptions options;
    options.listener = std::move(beginning.listener);
    options.output_log = std::move(beginning.output);
    options.publications = std::move(beginning.publications);
    options.warm = std::move(beginning.warm);
    options.access_token = std::move(request.agent_token);
    options.environment = beginning.activated.environment(request);
    options.working_directory = std::move(request.working_directory);
    options.uid = beginning.activated.uid;
    options.gid = beginning.activated.gid;
    options.init = true;
    if (!waits_without_program(request.entrypoint, options.environment)) {
        options.entrypoint = std::move(request.entrypoint);
    }
    options.hooks = std::move(request.hooks);
    options.on_ready = [number = request.request](const Status& status) {
        if (!status) fail(number, explain(status.error()));
        // Nobody would know of a sandbox whose spawner died meanwhile.
        if (!answer(SlotReady{})) ::_exit(1);
        ::close(control_descriptor);
    };
    return options;
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

/// Starts the image's programs, then waits for the sandbox that this will be.
void await_owner(const Host& host, SlotId slot, Beginning& beginning) {
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
    if (auto status = forget_parent(std::move(control)); !status) ::_exit(1);
    // The maker attaches cgroups, ids and the network, then says so.
    (void)next_message(nullptr);
    if (auto status = become_blank(host, slot); !status) fail(0, status.error());
    if (!answer(SlotReady{})) ::_exit(1);

    Beginning beginning = begin(host, slot);
    if (beginning.request.id.empty()) await_owner(host, slot, beginning);
    ::_exit(agent::run(agent_options(std::move(beginning))));
}

}  // namespace opensandbox::runtime::native
