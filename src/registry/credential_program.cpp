#include "base/unique_fd.hpp"
#include "image/input_stream.hpp"
#include "registry/docker_config.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

namespace opensandbox::registry {
namespace {

constexpr std::size_t kLongestAnswer = std::size_t{64} << 10;

class Spawn {
  public:
    Spawn(int input, int output) {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
        ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        ::posix_spawnattr_init(&attributes_);
        // The server ignores SIGPIPE and may block signals; programs expect neither.
        sigset_t none;
        ::sigemptyset(&none);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        sigset_t defaults;
        ::sigemptyset(&defaults);
        ::sigaddset(&defaults, SIGPIPE);
        ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
        ::posix_spawnattr_setpgroup(&attributes_, 0);
        ::posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    Spawn(const Spawn&) = delete;
    Spawn& operator=(const Spawn&) = delete;
    ~Spawn() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    Result<pid_t> run(const std::string& program) {
        std::string verb = "get";
        char* words[] = {const_cast<char*>(program.c_str()), verb.data(), nullptr};
        pid_t pid = 0;
        int problem =
            ::posix_spawnp(&pid, program.c_str(), &actions_, &attributes_, words, environ);
        if (problem != 0) return Error::from_errno(problem, "run " + program);
        return pid;
    }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

}  // namespace

Result<std::string> run_credential_program(const std::string& program, const std::string& input,
                                           std::chrono::milliseconds limit) {
    // Files in memory: neither side can block on the other.
    UniqueFd given(::memfd_create("input", MFD_CLOEXEC));
    UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
    if (!given || !output) return Error::from_errno(errno, "memfd_create");
    if (auto ok = image::write_all(given.get(), input); !ok) return ok.error();
    ::lseek(given.get(), 0, SEEK_SET);
    auto pid = Spawn(given.get(), output.get()).run(program);
    if (!pid) return pid.error();
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    bool in_time = process && ::poll(&ended, 1, static_cast<int>(limit.count())) == 1;
    if (!in_time) ::kill(-*pid, SIGKILL);
    int status = 0;
    while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) return Error(ErrorCode::timeout, program + ": did not end in time");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::string how = WIFEXITED(status)
                              ? "exit code " + std::to_string(WEXITSTATUS(status))
                              : "killed by signal " + std::to_string(WTERMSIG(status));
        return Error(ErrorCode::io, program + ": " + how);
    }
    std::string answer(kLongestAnswer, '\0');
    ssize_t length = ::pread(output.get(), answer.data(), answer.size(), 0);
    answer.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return answer;
}

}  // namespace opensandbox::registry
