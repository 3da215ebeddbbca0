#include "agent/pty/input_queue.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace opensandbox::agent {

struct InputQueue::State {
    State(const asio::any_io_executor& executor, UniqueFd fd)
        : descriptor(executor, fd.release()) {}

    asio::posix::stream_descriptor descriptor;
    std::string waiting;
    bool armed = false;
    bool failed = false;
    std::function<void()> on_change;

    void write(std::string_view& bytes) {
        while (!bytes.empty() && !failed) {
            ssize_t taken = ::write(descriptor.native_handle(), bytes.data(), bytes.size());
            if (taken < 0 && errno == EINTR) continue;
            if (taken < 0 && errno == EAGAIN) return;
            if (taken < 0) {
                failed = true;
            } else {
                bytes.remove_prefix(static_cast<std::size_t>(taken));
            }
        }
    }

    static void arm(const std::shared_ptr<State>& state) {
        if (state->armed || state->failed) return;
        state->armed = true;
        state->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                     [state](const boost::system::error_code& failure) {
                                         state->armed = false;
                                         if (!failure) flush(state);
                                     });
    }

    static void flush(const std::shared_ptr<State>& state) {
        std::string_view rest = state->waiting;
        state->write(rest);
        state->waiting.erase(0, state->waiting.size() - rest.size());
        if (state->failed || state->waiting.empty()) std::string().swap(state->waiting);
        if (!state->waiting.empty()) arm(state);
        bool full = state->waiting.size() >= kMuch;
        if (!full && state->on_change) state->on_change();
    }
};

InputQueue::InputQueue(const asio::any_io_executor& executor, UniqueFd fd) {
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    state_ = std::make_shared<State>(executor, std::move(fd));
}

InputQueue::~InputQueue() {
    state_->failed = true;
    boost::system::error_code ignored;
    state_->descriptor.close(ignored);
    if (state_->on_change) state_->on_change();
    state_->on_change = nullptr;
}

void InputQueue::push(std::string_view bytes) {
    if (state_->waiting.empty()) state_->write(bytes);
    if (bytes.empty() || state_->failed) return;
    state_->waiting.append(bytes);
    State::arm(state_);
}

bool InputQueue::full() const {
    return !state_->failed && state_->waiting.size() >= kMuch;
}

bool InputQueue::failed() const {
    return state_->failed;
}

void InputQueue::on_change(std::function<void()> listener) {
    state_->on_change = std::move(listener);
}

}  // namespace opensandbox::agent
