#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

namespace opensandbox::runtime::native {

/// The spawner's loop: descriptors and timers, one thread, nothing that a forked child would
/// trip over.
class EventLoop {
  public:
    using Clock = std::chrono::steady_clock;
    using Handler = std::function<void(std::uint32_t events)>;

    static Result<std::unique_ptr<EventLoop>> make();

    /// Watches a descriptor until destroyed. Must not outlive the loop.
    class Watch {
      public:
        Watch() = default;
        Watch(Watch&& other) noexcept { *this = std::move(other); }
        Watch& operator=(Watch&& other) noexcept;
        ~Watch() { reset(); }
        void reset();
        [[nodiscard]] explicit operator bool() const { return loop_ != nullptr; }

      private:
        friend class EventLoop;
        EventLoop* loop_ = nullptr;
        int fd_ = -1;
        std::uint64_t token_ = 0;
    };

    /// `events` are EPOLL*; the descriptor is borrowed, must stay open while watched and may be
    /// watched once at a time. A handler may end its own watch.
    Watch watch(int fd, std::uint32_t events, Handler handler);
    /// Calls once, on the loop.
    void run_after(Clock::duration delay, std::function<void()> action);
    /// Handles what is due; waits for it no longer than `limit`.
    void run_once(Clock::duration limit);

  private:
    explicit EventLoop(UniqueFd epoll) : epoll_(std::move(epoll)) {}

    void run_timers();

    UniqueFd epoll_;
    std::uint64_t next_token_ = 0;
    std::unordered_map<std::uint64_t, std::shared_ptr<Handler>> handlers_;
    std::multimap<Clock::time_point, std::function<void()>> timers_;
};

}  // namespace opensandbox::runtime::native
