#include "controller/work/work_queue.hpp"

#include "base/log.hpp"

namespace opensandbox::controller {
namespace {

constexpr kube::BackOff::Limits kPauses{.first = std::chrono::milliseconds(100),
                                        .longest = std::chrono::milliseconds(60'000)};
constexpr std::chrono::hours kLongestSleep{1};

}  // namespace

WorkQueue::WorkQueue(asio::any_io_executor executor, std::size_t workers, Work work)
    : executor_(executor), workers_(workers), work_(std::move(work)), wake_(executor) {}

void WorkQueue::add(const kube::ObjectKey& key) {
    if (const auto at = later_.find(key); at != later_.end()) {
        timeline_.erase({at->second, key});
        later_.erase(at);
    }
    if (running_.contains(key)) {
        again_.insert(key);
    } else if (queued_.insert(key).second) {
        ready_.push_back(key);
        wake_.notify();
    }
}

void WorkQueue::add_after(const kube::ObjectKey& key, std::chrono::milliseconds delay) {
    if (queued_.contains(key)) return;
    const auto due = Clock::now() + delay;
    if (const auto at = later_.find(key); at != later_.end()) {
        if (at->second <= due) return;
        timeline_.erase({at->second, key});
    }
    later_[key] = due;
    timeline_.emplace(due, key);
    wake_.notify();
}

void WorkQueue::forget(const kube::ObjectKey& key) {
    pauses_.erase(key);
    if (const auto at = later_.find(key); at != later_.end()) {
        timeline_.erase({at->second, key});
        later_.erase(at);
    }
}

void WorkQueue::stop() {
    stopped_ = true;
    wake_.notify();
}

void WorkQueue::begin_what_is_ready() {
    const auto now = Clock::now();
    while (!timeline_.empty() && timeline_.begin()->first <= now)
        add(kube::ObjectKey(timeline_.begin()->second));
    while (!ready_.empty() && running_.size() < workers_) {
        kube::ObjectKey key = std::move(ready_.front());
        ready_.pop_front();
        queued_.erase(key);
        running_.insert(key);
        net::spawn(executor_, look_at(std::move(key)), "look at an object");
    }
}

Awaitable<void> WorkQueue::run() {
    while (!stopped_) {
        begin_what_is_ready();
        auto sleep = std::chrono::nanoseconds(kLongestSleep);
        if (!timeline_.empty()) {
            sleep =
                std::min(sleep, std::chrono::nanoseconds(timeline_.begin()->first - Clock::now()));
        }
        if (sleep.count() > 0) co_await wake_.wait_for(sleep);
    }
    while (!running_.empty())
        co_await wake_.wait();
}

Awaitable<void> WorkQueue::look_at(kube::ObjectKey key) {
    auto done = co_await work_(key);
    running_.erase(key);
    const bool asked = again_.erase(key) > 0;
    if (!done) {
        auto at = pauses_.try_emplace(key, kPauses, seed_++).first;
        const auto pause = at->second.next();
        log::warn("an object is tried again", {{"object", kube::to_string(key)},
                                               {"error", done.error().message()},
                                               {"milliseconds", pause.count()}});
        add_after(key, pause);
    } else {
        pauses_.erase(key);
        if (*done) add_after(key, **done);
        if (asked) add(key);
    }
    wake_.notify();
}

}  // namespace opensandbox::controller
