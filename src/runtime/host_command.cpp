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
#include <functional>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace opensandbox::runtime {
namespace {

constexpr std::size_t kShown = 500;
/// More is read than shown: what is cut off in the middle would not be known as a secret.
constexpr std::size_t kRead = 64 * 1024;
/// A process that waits for a dead file system does not even end when it is killed.
constexpr int kGraceMs = 2000;

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
        // What ends the server's group, like Ctrl-C, is not meant for it.
        ::posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
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

void redact(std::string& text, const std::string& secret) {
    if (secret.empty()) return;
    constexpr std::string_view kShownInstead = "***";
    for (std::size_t at = text.find(secret); at != std::string::npos;
         at = text.find(secret, at + kShownInstead.size()))
        text.replace(at, secret.size(), kShownInstead);
}

/// The end of what was written to the file, in one line.
std::string last_words(int file, const std::vector<std::string>& secrets) {
    off_t size = ::lseek(file, 0, SEEK_END);
    std::string text(kRead, '\0');
    off_t begin = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
    ssize_t got = ::pread(file, text.data(), text.size(), begin);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    // A longer one may hold a shorter one.
    std::vector<std::string> hidden = secrets;
    std::ranges::sort(hidden, std::greater<>(), &std::string::size);
    for (const std::string& secret : hidden)
        redact(text, secret);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
    if (text.size() > kShown) text.erase(0, text.size() - kShown);
    return text;
}

enum class Waited : std::uint8_t { ended, late, stopped };

Waited wait_for_end(int process, std::chrono::milliseconds limit, int stop) {
    const auto until = std::chrono::steady_clock::now() + limit;
    std::array<pollfd, 2> watched{pollfd{process, POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    while (true) {
        auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return Waited::late;
        int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
        if (ready < 0 && errno != EINTR) return Waited::late;
        if (ready <= 0) continue;
        return watched[0].revents != 0 ? Waited::ended : Waited::stopped;
    }
}

int reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// Ends the program and those of its session that share its group.
void end_group(pid_t pid, int process) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    if (process >= 0 &&
        wait_for_end(process, std::chrono::milliseconds(kGraceMs), -1) != Waited::ended) {
        // It ends when the kernel lets go of it; nobody else has to wait for that.
        std::thread([pid] { reap(pid); }).detach();
        return;
    }
    reap(pid);
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

Status run_host_command(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                        const HostCommandOptions& options) {
    UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
    if (!output) return Error::from_errno(errno, "memfd_create");
    auto pid = SpawnSetup(output.get()).run(argv);
    if (!pid) return pid.error();
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    Waited waited = process ? wait_for_end(process.get(), limit, options.stop) : Waited::late;
    if (waited != Waited::ended) {
        end_group(*pid, process.get());
        std::string words = last_words(output.get(), options.secrets);
        if (!words.empty()) words.insert(0, ": ");
        return waited == Waited::late
                   ? Error(ErrorCode::timeout, argv.front() + ": did not end in time" + words)
                   : Error(ErrorCode::cancelled, argv.front() + ": the server ends" + words);
    }
    int status = reap(*pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    std::string how = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                        : "killed by signal " + std::to_string(WTERMSIG(status));
    return Error(ErrorCode::io,
                 argv.front() + ": " + how + ": " + last_words(output.get(), options.secrets));
}

}  // namespace opensandbox::runtime
