#include "base/program_answer.hpp"

#include "base/unique_fd.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <unistd.h>

namespace opensandbox {
namespace {

constexpr std::size_t kLongestAnswer = std::size_t{64} << 10;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const bool replaced = std::ranges::any_of(added, [text](const auto& one) {
            return text.starts_with(one.first) && text.substr(one.first.size()).starts_with('=');
        });
        if (!replaced) variables.emplace_back(text);
    }
    for (const auto& [name, value] : added)
        variables.push_back(name + "=" + value);
    return variables;
}

/// A file in memory: neither side can block on the other.
Result<UniqueFd> file_of(std::string_view content) {
    UniqueFd file(::memfd_create("program", MFD_CLOEXEC));
    if (!file) return Error::from_errno(errno, "memfd_create");
    const auto written = ::pwrite(file.get(), content.data(), content.size(), 0);
    if (written != static_cast<ssize_t>(content.size())) {
        return Error::from_errno(written < 0 ? errno : ENOSPC, "write a program's input");
    }
    return file;
}

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
    Result<pid_t> run(const ProgramCall& call) {
        std::vector<std::string> words{call.program};
        words.insert(words.end(), call.arguments.begin(), call.arguments.end());
        std::vector<std::string> variables = environment_with(call.environment);
        pid_t pid = 0;
        const int problem =
            ::posix_spawnp(&pid, call.program.c_str(), &actions_, &attributes_,
                           pointers_to(words).data(), pointers_to(variables).data());
        if (problem != 0) return Error::from_errno(problem, "run " + call.program);
        return pid;
    }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

}  // namespace

Result<std::string> ask_program(const ProgramCall& call) {
    auto given = file_of(call.input);
    if (!given) return given.error();
    auto output = file_of("");
    if (!output) return output.error();
    auto pid = Spawn(given->get(), output->get()).run(call);
    if (!pid) return pid.error();
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    bool in_time = process && ::poll(&ended, 1, static_cast<int>(call.limit.count())) == 1;
    if (!in_time) ::kill(-*pid, SIGKILL);
    int status = 0;
    while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) return Error(ErrorCode::timeout, call.program + ": did not end in time");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::string how = WIFEXITED(status)
                              ? "exit code " + std::to_string(WEXITSTATUS(status))
                              : "killed by signal " + std::to_string(WTERMSIG(status));
        return Error(ErrorCode::io, call.program + ": " + how);
    }
    std::string answer(kLongestAnswer, '\0');
    ssize_t length = ::pread(output->get(), answer.data(), answer.size(), 0);
    answer.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return answer;
}

}  // namespace opensandbox
