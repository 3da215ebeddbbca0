#include "egress/intercept/core/idle_watch.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace opensandbox::egress {

using std::chrono::steady_clock;

namespace {

/// For what was said last to get out.
constexpr std::chrono::milliseconds kRetiredIdle{1000};

}  // namespace

IdleWatch::Lease::Lease(IdleWatch& watch, WatchedTarget target, std::function<void()> expire)
    : watch_(watch),
      entry_(watch.entries_.insert(
          watch.entries_.end(), {steady_clock::time_point::max(), steady_clock::time_point::max(),
                                 std::move(expire), std::move(target)})) {}

IdleWatch::Lease::~Lease() {
    watch_.entries_.erase(entry_);
}

void IdleWatch::Lease::due_in(std::chrono::milliseconds time) {
    const bool retired = entry_->latest != steady_clock::time_point::max();
    entry_->due = steady_clock::now() + (retired ? std::min(time, kRetiredIdle) : time);
}

void IdleWatch::Lease::clear() {
    entry_->due = steady_clock::time_point::max();
}

void IdleWatch::Lease::name(const std::string& host) {
    if (entry_->target.host != host) entry_->target.host = host;
}

void IdleWatch::expire_where(const std::function<bool(const WatchedTarget&)>& chosen) {
    std::vector<std::function<void()>> ending;
    for (Entry& entry : entries_) {
        if (entry.expire && chosen(entry.target)) {
            ending.push_back(std::exchange(entry.expire, nullptr));
        }
    }
    for (auto& expire : ending)
        expire();
}

void IdleWatch::retire_where(const std::function<bool(const WatchedTarget&)>& chosen,
                             std::chrono::milliseconds grace) {
    const steady_clock::time_point latest = steady_clock::now() + grace;
    std::vector<std::function<void()>> ending;
    for (Entry& entry : entries_) {
        if (!entry.expire || !chosen(entry.target)) continue;
        if (entry.due != steady_clock::time_point::max()) {
            ending.push_back(std::exchange(entry.expire, nullptr));
        } else {
            entry.latest = std::min(entry.latest, latest);
        }
    }
    for (auto& expire : ending)
        expire();
}

void IdleWatch::sweep(steady_clock::time_point now) {
    std::vector<std::function<void()>> overdue;
    for (Entry& entry : entries_) {
        if (entry.due > now && entry.latest > now) continue;
        entry.due = entry.latest = steady_clock::time_point::max();
        overdue.push_back(std::exchange(entry.expire, nullptr));
    }
    for (auto& expire : overdue) {
        if (expire) expire();
    }
}

}  // namespace opensandbox::egress
