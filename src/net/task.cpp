#include "net/task.hpp"

#include "base/log.hpp"
#include "net/stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <string>
#include <utility>

namespace opensandbox::net {
namespace {

/// Logs what escaped a detached task.
class TaskEnd {
  public:
    TaskEnd(std::string_view n, std::shared_ptr<asio::cancellation_signal> s)
        : name_(n), signal_(std::move(s)) {}

    void operator()(std::exception_ptr failure) const {
        if (!failure) return;
        try {
            std::rethrow_exception(failure);
        } catch (const boost::system::system_error& error) {
            // A cancelled task unwinds through this exception: the intended end.
            if (error.code() == asio::error::operation_aborted) return;
            log::error("task failed", {{"task", name_}, {"error", error.what()}});
        } catch (const std::exception& error) {
            log::error("task failed", {{"task", name_}, {"error", error.what()}});
        } catch (...) {
            log::error("task failed", {{"task", name_}, {"error", "unknown exception"}});
        }
    }

  private:
    std::string name_;
    /// Kept until the task has ended: asio refers to it to the last.
    std::shared_ptr<asio::cancellation_signal> signal_;
};

}  // namespace

void spawn(asio::any_io_executor executor, Awaitable<void> task, std::string_view name) {
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(asio::cancellation_slot(), TaskEnd(name, nullptr)));
}

std::shared_ptr<asio::cancellation_signal> spawn_cancellable(asio::any_io_executor executor,
                                                             Awaitable<void> task,
                                                             std::string_view name) {
    auto signal = std::make_shared<asio::cancellation_signal>();
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(signal->slot(), TaskEnd(name, signal)));
    return signal;
}

Awaitable<void> sleep_for(std::chrono::nanoseconds duration) {
    auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, duration);
    co_await timer.async_wait(kAsTupleAwaitable);
}

struct Deadline::State {
    explicit State(asio::any_io_executor executor) : timer(executor) {}
    asio::steady_timer timer;
    std::function<void()> action;
    bool expired = false;

    static void arm(const std::shared_ptr<State>& state, std::chrono::nanoseconds after) {
        state->timer.expires_after(after);
        state->timer.async_wait([state](const boost::system::error_code& failure) {
            if (failure || !state->action) return;
            // The time was extended after this handler had been queued.
            if (state->timer.expiry() > std::chrono::steady_clock::now()) return;
            state->expired = true;
            auto action = std::exchange(state->action, nullptr);
            action();
        });
    }
};

Deadline::Deadline(asio::any_io_executor executor, std::chrono::nanoseconds after,
                   std::function<void()> action)
    : state_(std::make_shared<State>(std::move(executor))) {
    state_->action = std::move(action);
    State::arm(state_, after);
}

Deadline::~Deadline() {
    disarm();
}

void Deadline::extend(std::chrono::nanoseconds after) {
    if (state_->action) State::arm(state_, after);
}

void Deadline::disarm() {
    state_->action = nullptr;
    state_->timer.cancel();
}

bool Deadline::expired() const {
    return state_->expired;
}

struct Event::State {
    explicit State(asio::any_io_executor executor)
        : timer(executor, asio::steady_timer::time_point::max()) {}
    asio::steady_timer timer;
    bool signalled = false;
};

Event::Event(asio::any_io_executor executor)
    : state_(std::make_shared<State>(std::move(executor))) {}

Event::~Event() {
    state_->timer.cancel();
}

void Event::notify() {
    state_->signalled = true;
    state_->timer.cancel();
}

Awaitable<void> Event::wait() {
    // Held here: the event may be gone when the wait ends.
    auto state = state_;
    if (!state->signalled) co_await state->timer.async_wait(kAsTupleAwaitable);
    state->signalled = false;
}

Awaitable<bool> Event::wait_for(std::chrono::nanoseconds duration) {
    auto state = state_;
    if (!state->signalled) {
        state->timer.expires_after(duration);
        co_await state->timer.async_wait(kAsTupleAwaitable);
        state->timer.expires_at(asio::steady_timer::time_point::max());
    }
    co_return std::exchange(state->signalled, false);
}

namespace {

Awaitable<void> pool_job(std::function<void()> work) {
    work();
    co_return;
}

}  // namespace

Awaitable<void> run_on_pool(asio::thread_pool& pool, std::function<void()> work) {
    // co_spawn posts to the pool and hands the end back through the caller's executor.
    co_await asio::co_spawn(pool.get_executor(), pool_job(std::move(work)), asio::use_awaitable);
}

}  // namespace opensandbox::net
