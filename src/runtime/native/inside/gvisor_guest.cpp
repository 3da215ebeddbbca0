#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/listening_socket.hpp"
#include "runtime/native/inside/gvisor_link.hpp"
#include "runtime/native/inside/gvisor_slot.hpp"
#include "runtime/native/inside/slot_process.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

/// The agent's side of a sandbox under gVisor.
namespace opensandbox::runtime::native {

namespace {

Result<GuestRequest> read_request() {
    const UniqueFd file(kGuestRequest);
    struct stat info{};
    if (::fstat(file.get(), &info) < 0) return last_error("look at the request");
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
    if (got != info.st_size) return last_error("read the request");
    // It holds the agent's token.
    if (::ftruncate(file.get(), 0) < 0) return last_error("empty the request");
    auto request = parse_guest_request(text);
    ::explicit_bzero(text.data(), text.size());
    return request;
}

/// Connections to published ports come in behind the agent's.
Result<std::vector<agent::Publication>> listen_for_published(
    const std::vector<std::uint16_t>& published) {
    std::vector<agent::Publication> out;
    for (std::size_t i = 0; i < published.size(); ++i) {
        auto port = static_cast<std::uint16_t>(kGvisorAgentPort + 1 + i);
        auto listener = listen_on(kGvisorAgentAddress, port);
        if (!listener) return listener.error();
        out.emplace_back(std::move(*listener), published[i]);
    }
    return out;
}

/// From here on no process begun here can signal process 1 by its number, as a kernel that knows of
/// namespaces forbids by itself and gVisor's does not: a filter of system calls refuses it (EPERM).
/// no_new_privs is set.
Status guard_first_process() {
    if (auto s = check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs"); !s) return s;
    // Those whose first argument is a process.
    constexpr std::array<std::uint32_t, 6> kCalls{
        SYS_kill,      SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
        SYS_pidfd_open};
    std::vector<sock_filter> program;
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (std::size_t i = 0; i < kCalls.size(); ++i) {
        // To the look at the argument, behind the others and the permission.
        const auto skip = static_cast<std::uint8_t>(kCalls.size() - i);
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCalls[i], skip, 0));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return install_seccomp_filter(program);
}

Result<Beginning> begin_guest() {
    auto given = read_request();
    if (!given) return given.error();
    if (auto s = settle_process(); !s) return s.error();
    Beginning out;
    out.request = std::move(given->request);
    std::uint16_t port = kGvisorAgentPort;
    auto listener = listen_on(kGvisorAgentAddress, port);
    if (!listener) return listener.error();
    out.listener = std::move(*listener);
    auto published = listen_for_published(out.request.plan.network.published);
    if (!published) return published.error();
    out.publications = std::move(*published);
    out.output.reset(kGuestOutput);
    if (auto s = guard_first_process(); !s) return s.error();
    auto activated = confine(out.request, given->filter);
    if (!activated) return activated.error();
    out.activated = std::move(*activated);
    out.keep_control = true;
    return out;
}

}  // namespace

std::string format_guest_request(CreateRequest request, const std::vector<sock_filter>& filter) {
    request.plan.image.layers.clear();
    request.plan.snapshot_layers.clear();
    // Of volumes it needs to know what is where, not whose it is outside.
    for (VolumeMount& volume : request.volumes) {
        volume.source.clear();
        volume.sub_path.clear();
    }
    request.plan.image.usr.clear();
    const std::string message = encode(request);
    const std::uint64_t length = message.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    out += message;
    out.append(reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter));
    return out;
}

Result<GuestRequest> parse_guest_request(std::string_view text) {
    const Error broken(ErrorCode::protocol, "guest: unexpected request");
    std::uint64_t length = 0;
    if (text.size() < sizeof length) return broken;
    std::memcpy(&length, text.data(), sizeof length);
    text.remove_prefix(sizeof length);
    if (length > text.size() || (text.size() - length) % sizeof(sock_filter) != 0) return broken;
    auto message = decode(text.substr(0, length));
    if (!message) return message.error();
    auto* request = std::get_if<CreateRequest>(&*message);
    if (!request) return broken;
    text.remove_prefix(length);
    GuestRequest out;
    out.request = std::move(*request);
    out.filter.resize(text.size() / sizeof(sock_filter));
    if (!text.empty()) std::memcpy(out.filter.data(), text.data(), text.size());
    return out;
}

int guest_main(int, char**) {
    for (const int fd : {kControlDescriptor, kGuestRequest, kGuestOutput}) {
        if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return 2;
    }
    auto beginning = begin_guest();
    if (!beginning) fail(0, beginning.error());
    const int code = agent::run(agent_options(std::move(*beginning)));
    // Without this word it was not the entrypoint that ended.
    (void)answer(DoneReply{static_cast<std::uint64_t>(code)});
    return code;
}

}  // namespace opensandbox::runtime::native
