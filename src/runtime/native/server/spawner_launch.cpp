#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/records/protocol.hpp"
#include "runtime/native/server/spawner_link.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

constexpr int kTimeoutMs = 45'000;
constexpr int kReportDescriptor = 3;
constexpr off_t kMaxLog = 1 << 20;

/// What the child process does to its descriptors before it becomes the spawner.
class FileActions {
  public:
    FileActions(const std::string& log, int report) {
        ::posix_spawn_file_actions_init(&actions_);
        // First, so that nothing it might collide with is opened yet.
        ::posix_spawn_file_actions_adddup2(&actions_, report, kReportDescriptor);
        ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_addopen(&actions_, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                           0600);
        ::posix_spawn_file_actions_adddup2(&actions_, 1, 2);
        ::posix_spawn_file_actions_addclosefrom_np(&actions_, kReportDescriptor + 1);
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
        sigset_t none;
        sigemptyset(&none);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
    }
    ~FileActions() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;

    Status start(const std::filesystem::path& executable, std::vector<std::string> arguments) {
        std::vector<char*> argv;
        for (std::string& argument : arguments)
            argv.push_back(argument.data());
        argv.push_back(nullptr);
        const std::array<char*, 1> environment{nullptr};
        pid_t pid = 0;
        const int error = ::posix_spawn(&pid, executable.c_str(), &actions_, &attributes_,
                                        argv.data(), environment.data());
        if (error != 0) return Error::from_errno(error, "start " + executable.string());
        // It forks once more and ends, so that the spawner is nobody's child here.
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        return {};
    }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

Status await_report(int pipe) {
    std::string text;
    while (true) {
        pollfd item{pipe, POLLIN, 0};
        const int ready = ::poll(&item, 1, kTimeoutMs);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return Error(ErrorCode::timeout, "the spawner does not say that it serves");
        std::array<char, 512> buffer;
        const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
        if (got <= 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    if (text == "ready") return {};
    if (text.starts_with("error ")) {
        return Error(ErrorCode::unavailable, "spawner: " + text.substr(6));
    }
    return Error(ErrorCode::unavailable, "the spawner ended before it served; see its log");
}

}  // namespace

Status launch_spawner(const std::filesystem::path& executable, SpawnerOptions options) {
    for (const auto& path : {options.state_directory, options.own_directory()}) {
        if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
            return last_error("mkdir " + path.string());
        }
    }
    const std::string log = (options.own_directory() / "log").string();
    struct stat info{};
    const bool long_log = ::stat(log.c_str(), &info) == 0 && info.st_size > kMaxLog;
    if (long_log && ::truncate(log.c_str(), 0) < 0) return last_error("truncate " + log);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) < 0) return last_error("pipe2");
    UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    options.report = kReportDescriptor;
    std::vector<std::string> arguments = options.to_arguments();
    arguments.insert(arguments.begin(), {"opensandbox", "spawner"});
    FileActions actions(log, writing.get());
    if (auto s = actions.start(executable, std::move(arguments)); !s) return s;
    writing.reset();
    return await_report(reading.get());
}

Status retire_spawner(const std::filesystem::path& path) {
    UniqueFd process;
    {
        const auto socket = connect_message_socket(path);
        if (!socket) return {};
        ucred peer{};
        socklen_t size = sizeof peer;
        if (::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
            return last_error("ask who the spawner is");
        }
        process.reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
        if (!process && errno == ESRCH) return {};
        if (!process) return last_error("open the spawner's process");
    }
    for (const int signal : {kHandOverSignal, SIGKILL}) {
        if (auto s = signal_process(process.get(), signal); !s) return s.error().within("spawner");
        pollfd item{process.get(), POLLIN, 0};
        int ready;
        do {
            ready = ::poll(&item, 1, kTimeoutMs);
        } while (ready < 0 && errno == EINTR);
        if (ready > 0) return {};
    }
    return Error(ErrorCode::timeout, "the spawner of another version does not end");
}

}  // namespace opensandbox::runtime::native
