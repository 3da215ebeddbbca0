#include "runtime/native/inside/gvisor_runner.hpp"

#include "json/document.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/gvisor_slot.hpp"
#include "runtime/native/inside/slot_process.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr const char* kLogPath = "/runsc.log";
constexpr const char* kOutputPath = "/runsc.out";
/// Of what runsc said; the rest is left out.
constexpr std::size_t kMostWords = 600;
/// What a shell says of a process that was killed: nothing inside chose this end.
constexpr int kIlledCode = 128 + SIGKILL;

/// runsc's own executable, behind the guest's descriptors (gvisor_slot.hpp).
constexpr int kRunscSelf = 6;
/// Above all that it inherits, so that none of those is overwritten before it is used.
constexpr int kAside = 32;

const std::array kArguments{
    "runsc",
    "--root=/state",
    "--platform=systrap",
    "--network=sandbox",
    // What is written goes to the sandbox's writable layer, which is one already.
    "--overlay2=none",
    // The slot is in its cgroups, and all its processes with it.
    "--ignore-cgroups",
    "--host-uds=none",
    "--host-fifo=none",
    "--host-settings=ignore",
    "--log=/runsc.log",
    "--panic-log=/runsc.out",
    "run",
    "--bundle=/bundle",
    "--pass-fd=3:3",
    "--pass-fd=4:4",
    "--pass-fd=5:5",
    "sandbox",
};

/// What a process gets of another's descriptors, and how it is started.
class Launch {
  public:
    Launch() { ::posix_spawn_file_actions_init(&actions_); }
    ~Launch() { ::posix_spawn_file_actions_destroy(&actions_); }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    Status give(int from, int as) {
        UniqueFd copy(::fcntl(from, F_DUPFD_CLOEXEC, kAside));
        if (!copy) return last_error("duplicate a descriptor");
        ::posix_spawn_file_actions_adddup2(&actions_, copy.get(), as);
        copies_.push_back(std::move(copy));
        return {};
    }
    Result<pid_t> start() {
        ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_addopen(&actions_, 1, kOutputPath, O_WRONLY | O_CREAT | O_APPEND,
                                           0600);
        ::posix_spawn_file_actions_adddup2(&actions_, 1, 2);
        ::posix_spawn_file_actions_addclosefrom_np(&actions_, kRunscSelf + 1);
        std::array<char*, kArguments.size() + 1> argv{};
        for (std::size_t i = 0; i < kArguments.size(); ++i)
            argv[i] = const_cast<char*>(kArguments[i]);
        std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
        const std::array<char*, 2> environment{path.data(), nullptr};
        const std::string program = "/proc/self/fd/" + std::to_string(kRunscSelf);
        pid_t pid = 0;
        const int error = ::posix_spawn(&pid, program.c_str(), &actions_, nullptr, argv.data(),
                                        environment.data());
        if (error != 0) return Error::from_errno(error, "start runsc");
        return pid;
    }

  private:
    posix_spawn_file_actions_t actions_{};
    std::vector<UniqueFd> copies_;
};

/// The first message of runsc's log, JSON objects one after the other, else what it printed: what
/// comes later is only what followed from it.
std::string said() {
    const std::string log = read_file_or_empty(kLogPath);
    const std::size_t next = std::min(log.find("}{"), log.find("}\n{"));
    const std::string first = next == std::string::npos ? log : log.substr(0, next + 1);
    if (auto line = json::parse(first); line && line->is_object()) {
        auto message = json::get_string(line->get_object(), "msg");
        if (message && *message) return (*message)->substr(0, kMostWords);
    }
    const std::string printed = read_file_or_empty(kOutputPath);
    return (first.empty() ? printed : first).substr(0, kMostWords);
}

/// Why it ended, where the entrypoint was not the reason.
std::string why(int status) {
    if (WIFSIGNALED(status)) {
        return "runsc was ended by signal " + std::to_string(WTERMSIG(status));
    }
    const std::string words = said();
    if (!words.empty()) return "gVisor ended: " + words;
    return "gVisor's kernel was ended; runsc says code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

GvisorRunner::GvisorRunner(std::uint64_t request, Parts parts)
    : request_(request), parts_(std::move(parts)), children_(loop_, SIGCHLD) {}

Status GvisorRunner::start() {
    auto pair = message_pair();
    if (!pair) return pair.error();
    Launch launch;
    const std::array<std::pair<int, int>, 4> given{{{pair->second.get(), kControlDescriptor},
                                                    {parts_.request.get(), kGuestRequest},
                                                    {parts_.output.get(), kGuestOutput},
                                                    {parts_.runsc.get(), kRunscSelf}}};
    for (const auto& [from, as] : given) {
        if (auto s = launch.give(from, as); !s) return s;
    }
    auto pid = launch.start();
    if (!pid) return pid.error();
    runsc_ = *pid;
    guest_.assign(pair->first.release());
    parts_.request.reset();
    parts_.output.reset();
    parts_.runsc.reset();
    return {};
}

int GvisorRunner::run(const std::function<Status()>& fence) {
    await_child();
    auto started = start();
    if (started) started = fence();
    if (!started) fail(request_, started.error());
    net::spawn(loop_.get_executor(), await_guest(), "guest");
    loop_.run();
    return code_;
}

void GvisorRunner::await_child() {
    children_.async_wait([this](const boost::system::error_code& error, int) {
        if (error) return;
        await_child();
        int status = 0;
        for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid == runsc_) on_child(status);
        }
    });
}

void GvisorRunner::on_child(int status) {
    // It may have spoken just before.
    while (guest_.is_open() && !ended_ && hear()) {
    }
    const std::string words = why(status);
    if (!ready_) {
        fail(request_, Error(ErrorCode::internal, "gVisor did not start the sandbox: " + words));
    }
    code_ = ended_.value_or(kIlledCode);
    if (!ended_ && ::write(parts_.end.get(), words.data(), words.size()) < 0) code_ = 1;
    loop_.stop();
}

Awaitable<void> GvisorRunner::await_guest() {
    while (true) {
        boost::system::error_code error;
        co_await guest_.async_wait(asio::posix::descriptor_base::wait_read,
                                   asio::redirect_error(asio::use_awaitable, error));
        if (error || !hear()) break;
    }
    if (guest_.is_open()) guest_.close();
}

bool GvisorRunner::hear() {
    pollfd spoken{guest_.native_handle(), POLLIN, 0};
    if (::poll(&spoken, 1, 0) <= 0) return false;
    auto received = receive_message(guest_.native_handle());
    if (!received || received->closed) return false;
    auto message = decode(received->bytes);
    if (message) take(*message);
    return message.has_value();
}

void GvisorRunner::take(const Message& message) {
    if (const auto* failed = std::get_if<FailedReply>(&message); failed && !ready_) {
        fail(request_, failed->error);
    }
    if (const auto* done = std::get_if<DoneReply>(&message)) {
        ended_ = static_cast<int>(done->request & 0xff);
    }
    if (std::holds_alternative<SandboxReady>(message) && !ready_) begin_service();
}

void GvisorRunner::begin_service() {
    auto published = agent::publish(loop_.get_executor(), std::move(parts_.publications));
    if (!published) fail(request_, published.error());
    ready_ = true;
    // Nobody would know of a sandbox whose spawner died meanwhile.
    if (!answer(SandboxReady{})) ::_exit(1);
    ::close(kControlDescriptor);
}

}  // namespace opensandbox::runtime::native
