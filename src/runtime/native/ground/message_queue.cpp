#include "runtime/native/ground/message_queue.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/message_socket.hpp"

#include <sys/epoll.h>

#include <fcntl.h>

namespace opensandbox::runtime::native {

namespace {

constexpr std::size_t kMaxWaiting = 20'000;

}  // namespace

void MessageQueue::send(std::string bytes) {
    waiting_.push_back(std::move(bytes));
    if (waiting_.size() > kMaxWaiting) {
        log::error("a process does not read what it is sent and is let go");
        const auto broken = on_broken_;
        return broken();
    }
    if (waiting_.size() == 1) flush();
}

void MessageQueue::flush() {
    while (!waiting_.empty()) {
        auto sent = send_message(socket_, waiting_.front());
        if (!sent && sent.error().code() != ErrorCode::resource_exhausted) {
            const auto broken = on_broken_;
            return broken();
        }
        if (!sent) {
            UniqueFd copy(::fcntl(socket_, F_DUPFD_CLOEXEC, 3));
            writable_.reset();
            writable_ = loop_->watch(copy.get(), EPOLLOUT | EPOLLONESHOT,
                                     [this](std::uint32_t) { flush(); });
            writable_descriptor_ = std::move(copy);
            return;
        }
        waiting_.pop_front();
    }
}

}  // namespace opensandbox::runtime::native
