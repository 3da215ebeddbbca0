#include "egress/role/supervisor.hpp"

#include "base/log.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::egress {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{5000};

/// Signals that are waited for instead of handled, while this exists.
class AwaitedSignals {
  public:
    AwaitedSignals() {
        ::sigemptyset(&set_);
        for (int number : {SIGTERM, SIGINT, SIGCHLD})
            ::sigaddset(&set_, number);
        ::sigprocmask(SIG_BLOCK, &set_, &former_);
    }
    AwaitedSignals(const AwaitedSignals&) = delete;
    AwaitedSignals& operator=(const AwaitedSignals&) = delete;
    ~AwaitedSignals() { restore(); }

    void restore() const { ::sigprocmask(SIG_SETMASK, &former_, nullptr); }
    /// The next one; 0 when none came within `limit`.
    [[nodiscard]] int next(std::optional<std::chrono::milliseconds> limit) const {
        timespec time{};
        if (limit) {
            time.tv_sec = limit->count() / 1000;
            time.tv_nsec = limit->count() % 1000 * 1'000'000;
        }
        int number = ::sigtimedwait(&set_, nullptr, limit ? &time : nullptr);
        return number > 0 ? number : 0;
    }

  private:
    sigset_t set_{};
    sigset_t former_{};
};

/// A child and what is known of it.
struct Child {
    pid_t pid = 0;
    UniqueFd ready;
    [[nodiscard]] bool was_ready() const {
        std::array<char, 1> byte{};
        return ::read(ready.get(), byte.data(), byte.size()) == 1;
    }
};

Result<Child> start_child(const Life& life, const AwaitedSignals& signals) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return Error::from_errno(errno, "pipe");
    Child child;
    child.ready.reset(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t parent = ::getpid();
    child.pid = ::fork();
    if (child.pid < 0) return Error::from_errno(errno, "fork");
    if (child.pid > 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    signals.restore();
    ::_exit(life(theirs.get()));
}

/// Waits for the child's end; its status. Other children are those of nobody.
int await_end(const Child& child, const AwaitedSignals& signals, bool& stopping) {
    while (true) {
        int status = 0;
        for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
            if (ended == child.pid) return status;
        int number = signals.next(std::nullopt);
        if (number != SIGTERM && number != SIGINT) continue;
        stopping = true;
        ::kill(child.pid, SIGTERM);
    }
}

int exit_code(int status) {
    constexpr int kSignalBase = 128;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

}  // namespace

int supervise(const Life& life) {
    const AwaitedSignals signals;
    std::chrono::milliseconds pause = kFirstPause;
    bool ever_ready = false;
    while (true) {
        Result<Child> child = start_child(life, signals);
        if (!child) {
            log::error("egress control cannot start", {{"error", child.error().message()}});
            return 1;
        }
        bool stopping = false;
        const int status = await_end(*child, signals, stopping);
        if (stopping) return exit_code(status);
        const bool was_ready = child->was_ready();
        if (!ever_ready && !was_ready && WIFEXITED(status)) return exit_code(status);
        ever_ready = ever_ready || was_ready;
        if (was_ready) pause = kFirstPause;
        log::error("egress control ended and is started again; what is refused stays refused",
                   {{"opensandbox.event", "egress.restarted"},
                    {"exit_code", exit_code(status)},
                    {"pause_ms", pause.count()}});
        const int number = signals.next(pause);
        if (number == SIGTERM || number == SIGINT) return exit_code(status);
        pause = std::min(pause * 2, kLongestPause);
    }
}

Result<UniqueFd> listen_for_api(const ListenAddress& address) {
    using boost::asio::ip::tcp;
    const auto listen = [](const tcp::endpoint& at) -> Result<UniqueFd> {
        const int family = at.protocol().family();
        UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const int on = 1;
        const int off = 0;
        if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd && family == AF_INET6)
            ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (!fd || ::bind(fd.get(), at.data(), static_cast<socklen_t>(at.size())) != 0 ||
            ::listen(fd.get(), SOMAXCONN) != 0) {
            return Error::from_errno(errno, "listen on port " + std::to_string(at.port()));
        }
        return fd;
    };
    if (address.address) return listen(tcp::endpoint(*address.address, address.port));
    auto both = listen(tcp::endpoint(tcp::v6(), address.port));
    if (both) return both;
    return listen(tcp::endpoint(tcp::v4(), address.port));
}

}  // namespace opensandbox::egress
