#pragma once

#include "kube/api/back_off.hpp"
#include "kube/api/resource.hpp"
#include "net/task.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace opensandbox::controller {

/// Objects to look at, each at most once at a time and first come first served. What fails is tried
/// again after pauses that grow; it never holds up the others. For one event loop.
class WorkQueue {
  public:
    /// When to look again though nothing happens; empty: when something does.
    using Again = std::optional<std::chrono::milliseconds>;
    using Work = std::function<Awaitable<Result<Again>>(kube::ObjectKey key)>;

    WorkQueue(asio::any_io_executor executor, std::size_t workers, Work work);
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    /// Soon; when it is being looked at now, once more afterwards.
    void add(const kube::ObjectKey& key);
    /// Not before, unless add() says so.
    void add_after(const kube::ObjectKey& key, std::chrono::milliseconds delay);
    /// The object is gone: nothing of it is remembered.
    void forget(const kube::ObjectKey& key);
    /// Runs until stop().
    Awaitable<void> run();
    void stop();
    /// How many are waited for or worked at.
    [[nodiscard]] std::size_t busy() const { return running_.size(); }
    [[nodiscard]] std::size_t waiting() const { return ready_.size(); }

  private:
    using Clock = std::chrono::steady_clock;
    Awaitable<void> look_at(kube::ObjectKey key);
    void begin_what_is_ready();

    asio::any_io_executor executor_;
    std::size_t workers_;
    Work work_;
    net::Event wake_;
    std::deque<kube::ObjectKey> ready_;
    std::set<kube::ObjectKey> queued_;
    std::set<kube::ObjectKey> running_;
    std::set<kube::ObjectKey> again_;  ///< of those that run
    std::map<kube::ObjectKey, Clock::time_point> later_;
    std::set<std::pair<Clock::time_point, kube::ObjectKey>> timeline_;
    std::map<kube::ObjectKey, kube::BackOff> pauses_;
    unsigned seed_ = 1;
    bool stopped_ = false;
};

}  // namespace opensandbox::controller
