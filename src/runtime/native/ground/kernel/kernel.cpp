#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

// From linux/pidfd.h of 6.13; the headers of older distributions lack it.
struct PidfdInfo {
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t pid, tgid, ppid;
    std::uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kPidfdInfoExit = 1U << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

ProcessEnd from_wait_status(int status) {
    if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
}

}  // namespace

Result<ClonedChild> clone_process(std::uint64_t flags, int cgroup) {
    int pidfd = -1;
    clone_args args{};
    args.flags = flags | CLONE_PIDFD;
    args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
    // With CLONE_PARENT the child inherits the caller's own, and the kernel wants none given.
    args.exit_signal = (flags & CLONE_PARENT) != 0 ? 0 : SIGCHLD;
    if (cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = static_cast<std::uint64_t>(cgroup);
    }
    // Who made a user namespace may look at it, unless the process in it may not be looked at: for
    // that root would need CAP_SYS_PTRACE. Until it takes ids of its own there is nobody else.
    const int dumpable = ::prctl(PR_GET_DUMPABLE);
    const bool shown = (flags & CLONE_NEWUSER) != 0 && dumpable == 0;
    if (shown) ::prctl(PR_SET_DUMPABLE, 1);
    const long pid = ::syscall(SYS_clone3, &args, sizeof args);
    const int failure = errno;
    if (shown && pid != 0) ::prctl(PR_SET_DUMPABLE, 0);
    if (pid < 0) return Error::from_errno(failure, "clone3");
    ClonedChild child;
    child.pid = static_cast<pid_t>(pid);
    if (pid > 0) child.pidfd.reset(pidfd);
    return child;
}

Status signal_process(int pidfd, int signal) {
    if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) < 0 && errno != ESRCH) {
        return last_error("pidfd_send_signal");
    }
    return {};
}

std::optional<ProcessEnd> process_end(int pidfd) {
    siginfo_t info{};
    if (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG | __WALL) == 0) {
        if (info.si_pid == 0) return std::nullopt;
        if (info.si_code == CLD_EXITED) return ProcessEnd{info.si_status, 0};
        return ProcessEnd{-1, info.si_status};
    }
    PidfdInfo answer{};
    answer.mask = kPidfdInfoExit;
    if (::ioctl(pidfd, kPidfdGetInfo, &answer) == 0 && (answer.mask & kPidfdInfoExit) != 0) {
        return from_wait_status(answer.exit_code);
    }
    return std::nullopt;
}

std::optional<std::uint64_t> process_start_time(pid_t pid) {
    auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
    if (!text) return std::nullopt;
    // The command name may hold anything, so count from its closing parenthesis: field 22 of all.
    std::size_t at = text->rfind(')');
    for (int field = 2; field < 22 && at != std::string::npos; ++field) {
        at = text->find(' ', at + 1);
    }
    if (at == std::string::npos) return std::nullopt;
    std::uint64_t value = 0;
    const char* begin = text->data() + at + 1;
    const auto result = std::from_chars(begin, text->data() + text->size(), value);
    if (result.ec != std::errc{}) return std::nullopt;
    return value;
}

Status write_file_at(int directory, const char* path, std::string_view text) {
    UniqueFd fd(::openat(directory, path, O_WRONLY | O_CLOEXEC));
    if (!fd) return last_error(std::string("open ") + path);
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0) return last_error(std::string("write ") + path);
    if (static_cast<std::size_t>(written) != text.size()) {
        return Error(ErrorCode::io, std::string("write ") + path + ": cut short");
    }
    return {};
}

Status write_file(const std::filesystem::path& path, std::string_view text) {
    return write_file_at(AT_FDCWD, path.c_str(), text);
}

Result<std::string> read_file(const std::filesystem::path& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return last_error("open " + path.string());
    std::string text;
    std::array<char, 4096> buffer;
    while (text.size() < 65536) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0) return last_error("read " + path.string());
        if (got == 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::string read_file_or_empty(const std::filesystem::path& path) {
    auto text = read_file(path);
    return text ? std::move(*text) : std::string();
}

std::string boot_id() {
    std::string text = read_file_or_empty("/proc/sys/kernel/random/boot_id");
    while (text.ends_with('\n'))
        text.pop_back();
    return text;
}

}  // namespace opensandbox::runtime::native
