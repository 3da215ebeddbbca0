#include "runtime/native/ground/event_loop.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

namespace opensandbox::runtime::native {

Result<std::unique_ptr<EventLoop>> EventLoop::make() {
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return last_error("epoll_create1");
    return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll)));
}

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
    if (this != &other) {
        reset();
        loop_ = std::exchange(other.loop_, nullptr);
        fd_ = other.fd_;
        token_ = other.token_;
    }
    return *this;
}

void EventLoop::Watch::reset() {
    if (!loop_) return;
    ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
    loop_->handlers_.erase(token_);
    loop_ = nullptr;
}

EventLoop::Watch EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
    Watch watch;
    watch.loop_ = this;
    watch.fd_ = fd;
    watch.token_ = ++next_token_;
    epoll_event event{};
    event.events = events;
    event.data.u64 = watch.token_;
    handlers_.emplace(watch.token_, std::make_shared<Handler>(std::move(handler)));
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    return watch;
}

void EventLoop::run_after(Clock::duration delay, std::function<void()> action) {
    timers_.emplace(Clock::now() + delay, std::move(action));
}

void EventLoop::run_once(Clock::duration limit) {
    if (!timers_.empty()) {
        limit = std::clamp(timers_.begin()->first - Clock::now(), Clock::duration::zero(), limit);
    }
    // Rounded up: a wake-up just before its time would spin.
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(millis));
    for (int i = 0; i < count; ++i) {
        // A copy: what the kernel writes is packed, and a reference must not lead into it.
        const std::uint64_t token = events[static_cast<std::size_t>(i)].data.u64;
        // An earlier handler of this round may have ended this watch; and a handler keeps itself
        // alive while it runs.
        const auto found = handlers_.find(token);
        if (found == handlers_.end()) continue;
        const auto handler = found->second;
        (*handler)(events[static_cast<std::size_t>(i)].events);
    }
    run_timers();
}

void EventLoop::run_timers() {
    const auto now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
        auto action = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
        action();
    }
}

}  // namespace opensandbox::runtime::native
