#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "net/stream.hpp"

namespace opensandbox::net {

/// Starts a detached coroutine. An exception that escapes it is logged under `name`, never thrown.
/// One place instantiates co_spawn for the whole program.
void spawn(asio::any_io_executor executor, Awaitable<void> task, std::string_view name);

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
/// `notify` was called since the last wait.
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
    asio::steady_timer timer_;
    bool signalled_ = false;
};

/// Runs `work` on the pool and resumes the caller on its own executor: for SQLite, archives, and
/// whatever else blocks.
template <class T>
Awaitable<T> run_blocking(asio::thread_pool& pool, std::function<T()> work) {
    auto home = co_await asio::this_coro::executor;
    auto job = [](std::function<T()> body) -> Awaitable<T> { co_return body(); };
    auto task = asio::co_spawn(pool.get_executor(), job(std::move(work)), asio::use_awaitable);
    (void)home;
    co_return co_await std::move(task);
}

}  // namespace opensandbox::net
