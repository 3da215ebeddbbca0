#include "agent/stream/output_pipe.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace

struct OutputPipe::State {
    State(asio::any_io_executor executor, UniqueFd fd) : descriptor(executor, fd.release()) {}

    asio::posix::stream_descriptor descriptor;
    std::function<void()> on_ready;
    std::size_t wanted = kNoLimit;  ///< bytes still to be read
    bool armed = false;
    bool ready = false;
    bool closed = false;
    bool discarding = false;  ///< reads for itself, beyond the life of its OutputPipe

    [[nodiscard]] std::size_t present() {
        int count = 0;
        return ::ioctl(descriptor.native_handle(), FIONREAD, &count) == 0
                   ? static_cast<std::size_t>(count)
                   : 0;
    }
    static void discard(const std::shared_ptr<State>& state);
};

Result<OutputPipe> OutputPipe::open(asio::any_io_executor executor, UniqueFd& write_end,
                                    std::function<void()> on_ready) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::from_errno(errno, "make a pipe");
    UniqueFd read_end(ends[0]);
    write_end.reset(ends[1]);
    // Only our end: the program must see an ordinary blocking pipe.
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    return adopt(std::move(executor), std::move(read_end), std::move(on_ready));
}

OutputPipe OutputPipe::adopt(asio::any_io_executor executor, UniqueFd read_end,
                             std::function<void()> on_ready) {
    auto state = std::make_shared<State>(std::move(executor), std::move(read_end));
    state->on_ready = std::move(on_ready);
    return OutputPipe(std::move(state));
}

OutputPipe::OutputPipe(std::shared_ptr<State> state) : state_(std::move(state)) {}
OutputPipe::OutputPipe(OutputPipe&&) noexcept = default;

OutputPipe::~OutputPipe() {
    if (!state_ || state_->discarding) return;
    state_->on_ready = nullptr;
    boost::system::error_code ignored;
    state_->descriptor.close(ignored);
}

bool OutputPipe::ready() const {
    return state_->ready && !ended();
}
bool OutputPipe::ended() const {
    return state_->closed || state_->wanted == 0;
}

std::size_t OutputPipe::read(std::span<char> into) {
    if (ended()) return 0;
    std::size_t size = std::min(into.size(), state_->wanted);
    ssize_t got = ::read(state_->descriptor.native_handle(), into.data(), size);
    if (got < 0 && errno == EINTR) return 0;
    if (got < 0 && errno == EAGAIN) {
        state_->ready = false;
        // Nothing may come any more although it was counted: the pipe is what counts.
        if (state_->wanted != kNoLimit) state_->wanted = 0;
        return 0;
    }
    if (got <= 0) {
        state_->closed = true;
        return 0;
    }
    auto count = static_cast<std::size_t>(got);
    if (state_->wanted != kNoLimit) {
        state_->wanted -= count;
    } else {
        // Back to the event loop for the next piece: a loud process leaves time for others.
        state_->ready = false;
    }
    return count;
}

void OutputPipe::arm() {
    if (state_->armed || ended()) return;
    state_->armed = true;
    state_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                  [state = state_](const boost::system::error_code& failure) {
                                      state->armed = false;
                                      if (failure) return;
                                      state->ready = true;
                                      if (state->on_ready) state->on_ready();
                                  });
}

void OutputPipe::on_ready(std::function<void()> listener) {
    state_->on_ready = std::move(listener);
}

void OutputPipe::want_all() {
    state_->wanted = kNoLimit;
    state_->ready = true;
}

void OutputPipe::limit_to_present() {
    if (ended()) return;
    state_->wanted = state_->present();
    state_->ready = true;
}

bool OutputPipe::holds_bytes() const {
    return state_->present() > 0;
}

void OutputPipe::read_again() {
    state_->ready = true;
}

void OutputPipe::discard_rest() {
    state_->on_ready = nullptr;
    state_->wanted = 0;
    if (state_->closed || state_->discarding) return;
    state_->discarding = true;
    boost::system::error_code ignored;
    state_->descriptor.cancel(ignored);
    State::discard(state_);
}

void OutputPipe::State::discard(const std::shared_ptr<State>& state) {
    std::array<char, 16 * 1024> dropped;
    while (true) {
        ssize_t got = ::read(state->descriptor.native_handle(), dropped.data(), dropped.size());
        if (got == 0) return;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno != EAGAIN) return;
        // One piece a turn, so that a busy survivor leaves time for others.
        break;
    }
    state->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [state](const boost::system::error_code& failure) {
                                     if (!failure) discard(state);
                                 });
}

}  // namespace opensandbox::agent
