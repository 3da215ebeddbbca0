#include "agent/ground/signals.hpp"

#include "base/unique_fd.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::array kHandled{SIGCHLD, SIGTERM, SIGINT,   SIGHUP,
                              SIGUSR1, SIGUSR2, SIGWINCH, SIGQUIT};

}  // namespace

struct Signals::State {
    State(asio::any_io_executor executor, UniqueFd fd) : descriptor(executor, fd.release()) {}

    asio::posix::stream_descriptor descriptor;
    std::function<void(int)> on_signal;

    static void wait(const std::shared_ptr<State>& state) {
        state->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                     [state](const boost::system::error_code& failure) {
                                         if (failure || !state->on_signal) return;
                                         state->deliver();
                                         if (state->on_signal) wait(state);
                                     });
    }

    void deliver() {
        std::array<signalfd_siginfo, 8> infos{};
        ssize_t got = ::read(descriptor.native_handle(), infos.data(), sizeof infos);
        if (got <= 0) return;
        auto count = static_cast<std::size_t>(got) / sizeof(signalfd_siginfo);
        for (std::size_t i = 0; i < count && on_signal; ++i) {
            on_signal(static_cast<int>(infos[i].ssi_signo));
        }
    }
};

Result<std::unique_ptr<Signals>> Signals::take(asio::any_io_executor executor,
                                               std::function<void(int number)> on_signal) {
    sigset_t handled;
    ::sigemptyset(&handled);
    for (int number : kHandled) {
        ::signal(number, SIG_DFL);
        ::sigaddset(&handled, number);
    }
    ::signal(SIGPIPE, SIG_IGN);
    if (::sigprocmask(SIG_SETMASK, &handled, nullptr) != 0) {
        return Error::from_errno(errno, "block signals");
    }
    UniqueFd fd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return Error::from_errno(errno, "signalfd");
    auto state = std::make_shared<State>(std::move(executor), std::move(fd));
    state->on_signal = std::move(on_signal);
    State::wait(state);
    return std::unique_ptr<Signals>(new Signals(std::move(state)));
}

Signals::Signals(std::shared_ptr<State> state) : state_(std::move(state)) {}

Signals::~Signals() {
    state_->on_signal = nullptr;
    boost::system::error_code ignored;
    state_->descriptor.close(ignored);
}

}  // namespace opensandbox::agent
