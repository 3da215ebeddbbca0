#include "runtime/native/inside/slot_agent.hpp"

#include "agent/trust/egress_certificate.hpp"
#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/sanitizer_reports.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/message_socket.hpp"

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
    return send_message(control_descriptor, encode(message));
}

void fail(std::uint64_t request, const Error& error) {
    (void)answer(FailedReply{request, error});
    ::_exit(1);
}

Message next_message(std::vector<UniqueFd>* descriptors) {
    auto received = receive_message(control_descriptor);
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
    options.working_directory = std::move(request.working_directory);
    options.uid = beginning.activated.uid;
    options.gid = beginning.activated.gid;
    options.init = true;
    if (!only_waits(request.entrypoint)) options.entrypoint = std::move(request.entrypoint);
    options.hooks = std::move(request.hooks);
    if (beginning.brokered) options.isolation_host = control_descriptor;
    options.on_ready = [number = request.request,
                        keep = beginning.keep_control || beginning.brokered](const Status& status) {
        if (!status) fail(number, explain(status.error()));
        // Nobody would know of a sandbox whose spawner died meanwhile.
        if (!answer(SlotReady{})) ::_exit(1);
        if (!keep) ::close(control_descriptor);
    };
    return options;
}

}  // namespace opensandbox::runtime::native
