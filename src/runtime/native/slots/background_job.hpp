#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/host/host.hpp"

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

namespace opensandbox::runtime::native {

/// What takes too long for the spawner's loop runs in a process of its own that steps back for
/// others. It dies with the spawner.
class BackgroundJobs {
  public:
    struct Job {
        std::function<Status()> work;      ///< in the process
        std::function<void()> afterwards;  ///< there, once the outcome was told; may be empty
        std::function<void(Status)> done;  ///< on the loop, once
    };

    /// Borrows both.
    BackgroundJobs(EventLoop& loop, const Host& host) : loop_(&loop), host_(&host) {}

    /// Runs it now or, when enough run already, later. Returns what to cancel it by.
    std::uint64_t start(Job job);
    /// Ends the process, if it has not told its outcome; `done` learns of a failure `cancelled`.
    void cancel(std::uint64_t number);
    [[nodiscard]] bool idle() const { return running_.empty() && waiting_.empty(); }

  private:
    struct Running {
        pid_t pid = 0;
        UniqueFd socket;
        EventLoop::Watch watch;
        std::function<void(Status)> done;
        bool cancelled = false;
    };

    void launch(std::uint64_t number, Job job);
    void on_message(std::uint64_t number);
    void start_next();

    EventLoop* loop_;
    const Host* host_;
    std::uint64_t last_number_ = 0;
    std::map<std::uint64_t, Running> running_;
    std::deque<std::pair<std::uint64_t, Job>> waiting_;
};

}  // namespace opensandbox::runtime::native
