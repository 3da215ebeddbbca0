#include "runtime/host_command.hpp"

#include "base/unique_fd.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime {
namespace {

constexpr std::size_t kShown = 500;

/// Owns what posix_spawn needs.
class SpawnSetup {
  public:
    explicit SpawnSetup(int output) {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
        ::posix_spawnattr_init(&attributes_);
        // The server ignores SIGPIPE and may block signals; programs expect neither.
        sigset_t none;
        ::sigemptyset(&none);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        sigset_t defaults;
        ::sigemptyset(&defaults);
        ::sigaddset(&defaults, SIGPIPE);
        ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    SpawnSetup& operator=(const SpawnSetup&) = delete;
    ~SpawnSetup() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    Result<pid_t> run(const std::vector<std::string>& argv) {
        std::vector<char*> words;
        for (const std::string& word : argv)
            words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        pid_t pid = 0;
        const std::string program = find_host_program(argv.front());
        if (program.empty()) return Error::from_errno(ENOENT, "run " + argv.front());
        const int problem =
            ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, words.data(), environ);
        if (problem != 0) return Error::from_errno(problem, "run " + argv.front());
        return pid;
    }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

/// The end of what was written to the file, in one line.
std::string last_words(int file) {
    off_t size = ::lseek(file, 0, SEEK_END);
    std::array<char, kShown> piece{};
    off_t begin = std::max<off_t>(0, size - static_cast<off_t>(piece.size()));
    ssize_t got = ::pread(file, piece.data(), piece.size(), begin);
    std::string text(piece.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    std::ranges::replace(text, '\n', ' ');
    return text;
}

}  // namespace

std::string find_host_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* path = std::getenv("PATH");
    std::istringstream directories((path ? path + std::string(":") : std::string()) +
                                   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    for (std::string directory; std::getline(directories, directory, ':');) {
        std::string full = directory + "/" + name;
        if (!directory.empty() && ::access(full.c_str(), X_OK) == 0) return full;
    }
    return {};
}

Status run_host_command(const std::vector<std::string>& argv, std::chrono::milliseconds limit) {
    UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
    if (!output) return Error::from_errno(errno, "memfd_create");
    auto pid = SpawnSetup(output.get()).run(argv);
    if (!pid) return pid.error();
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    bool in_time = process && ::poll(&ended, 1, static_cast<int>(limit.count())) == 1;
    if (!in_time) ::kill(*pid, SIGKILL);
    int status = 0;
    while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) return Error(ErrorCode::timeout, argv.front() + ": did not end in time");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    std::string how = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                        : "killed by signal " + std::to_string(WTERMSIG(status));
    return Error(ErrorCode::io, argv.front() + ": " + how + ": " + last_words(output.get()));
}

}  // namespace opensandbox::runtime
