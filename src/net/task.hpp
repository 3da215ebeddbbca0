#pragma once

#include "net/stream.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

namespace opensandbox::net {

/// Starts a detached coroutine. An exception that escapes it is logged under `name`, never thrown.
/// One place instantiates co_spawn for the whole program.
void spawn(asio::any_io_executor executor, Awaitable<void> task, std::string_view name);
/// The same for a task that can be ended early: emitting `terminal` on the signal makes the
/// operation that the task waits for fail as cancelled. The signal stays usable after the task has
/// ended.
std::shared_ptr<asio::cancellation_signal> spawn_cancellable(asio::any_io_executor executor,
                                                             Awaitable<void> task,
                                                             std::string_view name);

/// Waits; returns early when the coroutine is cancelled.
Awaitable<void> sleep_for(std::chrono::nanoseconds duration);

/// Runs `action` when the time is up, unless destroyed or disarmed before: a deadline around
/// socket operations (`Deadline d(ex, 5s, [&]{ stream.close(); });`).
class Deadline {
  public:
    Deadline(asio::any_io_executor executor, std::chrono::nanoseconds after,
             std::function<void()> action);
    ~Deadline();
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    /// Starts the time again from now.
    void extend(std::chrono::nanoseconds after);
    void disarm();
    [[nodiscard]] bool expired() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// A one-shot or repeated wake-up between coroutines of one event loop: `wait` returns at once when
/// `notify` was called since the last wait. One waiter at a time. Destruction ends a wait.
class Event {
  public:
    explicit Event(asio::any_io_executor executor);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    void notify();
    Awaitable<void> wait();
    /// False when the time passed first.
    Awaitable<bool> wait_for(std::chrono::nanoseconds duration);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Runs `work` on the pool and resumes the caller on its own executor; rethrows what it throws.
Awaitable<void> run_on_pool(asio::thread_pool& pool, std::function<void()> work);

/// Runs `work` on the pool and resumes the caller on its own executor with the result, or with the
/// exception it threw: for SQLite, archives, and whatever else blocks. Work that has begun runs to
/// its end even when the caller is gone by then, so it must own what it uses.
template <class T>
Awaitable<T> run_blocking(asio::thread_pool& pool, std::function<T()> work) {
    if constexpr (std::is_void_v<T>) {
        co_await run_on_pool(pool, std::move(work));
    } else {
        auto result = std::make_shared<std::optional<T>>();
        std::function<void()> job = [result, body = std::move(work)] { result->emplace(body()); };
        co_await run_on_pool(pool, std::move(job));
        co_return std::move(**result);
    }
}

}  // namespace opensandbox::net
