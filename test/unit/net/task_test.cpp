#include "net/task.hpp"

#include "support/event_loop.hpp"

#include <catch2/catch.hpp>

#include <future>
#include <stdexcept>
#include <thread>

using namespace opensandbox;
using namespace std::chrono_literals;
using test_support::Loop;

TEST_CASE("blocking work runs on the pool and its result comes back to the loop", "[net][task]") {
    Loop loop;
    asio::thread_pool pool(1);
    loop.run([&]() -> Awaitable<void> {
        auto loop_thread = std::this_thread::get_id();
        std::function<std::thread::id()> work = [] { return std::this_thread::get_id(); };
        auto worker = co_await net::run_blocking<std::thread::id>(pool, work);
        CHECK(worker != loop_thread);
        CHECK(std::this_thread::get_id() == loop_thread);
    });
}

TEST_CASE("blocking work may yield what cannot be made by default", "[net][task]") {
    struct Value {
        explicit Value(int n) : number(n) {}
        int number;
    };
    Loop loop;
    asio::thread_pool pool(1);
    loop.run([&]() -> Awaitable<void> {
        std::function<Result<Value>()> work = [] { return Result<Value>(Value(7)); };
        auto value = co_await net::run_blocking<Result<Value>>(pool, work);
        CHECK(value->number == 7);
    });
}

TEST_CASE("an exception in blocking work reaches the caller", "[net][task]") {
    Loop loop;
    asio::thread_pool pool(1);
    std::string caught;
    loop.run([&]() -> Awaitable<void> {
        auto loop_thread = std::this_thread::get_id();
        std::function<int()> work = []() -> int { throw std::runtime_error("broken"); };
        try {
            co_await net::run_blocking<int>(pool, work);
        } catch (const std::runtime_error& error) {
            caught = error.what();
        }
        CHECK(std::this_thread::get_id() == loop_thread);
    });
    CHECK(caught == "broken");
}

TEST_CASE("blocking work without a result ends before the caller goes on", "[net][task]") {
    Loop loop;
    asio::thread_pool pool(1);
    bool done = false;
    loop.run([&]() -> Awaitable<void> {
        std::function<void()> work = [&] { done = true; };
        co_await net::run_blocking<void>(pool, work);
        CHECK(done);
    });
}

TEST_CASE("the loop goes on while blocking work runs", "[net][task]") {
    Loop loop;
    asio::thread_pool pool(1);
    loop.run([&]() -> Awaitable<void> {
        std::promise<void> release;
        auto released = release.get_future();
        auto other = [](std::promise<void>& p) -> Awaitable<void> {
            p.set_value();
            co_return;
        };
        // The work can end only when another coroutine of this loop has run meanwhile.
        net::spawn(loop.executor(), other(release), "release");
        std::function<bool()> work = [&] {
            return released.wait_for(10s) == std::future_status::ready;
        };
        bool went_on = co_await net::run_blocking<bool>(pool, work);
        CHECK(went_on);
    });
}

TEST_CASE("an event remembers a notification until the next wait", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::Event event(loop.executor());
        event.notify();
        co_await event.wait();
        bool again = co_await event.wait_for(1ms);
        CHECK_FALSE(again);
        event.notify();
        bool notified = co_await event.wait_for(10s);
        CHECK(notified);
    });
}

TEST_CASE("an event wakes a coroutine that already waits", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::Event event(loop.executor());
        auto notifier = [](net::Event& e) -> Awaitable<void> {
            co_await net::sleep_for(1ms);
            e.notify();
        };
        net::spawn(loop.executor(), notifier(event), "notifier");
        co_await event.wait();
        SUCCEED();
    });
}

TEST_CASE("destroying an event ends its wait", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::Event ended(loop.executor());
        auto event = std::make_unique<net::Event>(loop.executor());
        auto waiter = [](net::Event& e, net::Event& end) -> Awaitable<void> {
            co_await e.wait();
            end.notify();
        };
        net::spawn(loop.executor(), waiter(*event, ended), "waiter");
        co_await net::sleep_for(1ms);
        event.reset();
        bool woken = co_await ended.wait_for(10s);
        CHECK(woken);
    });
}

TEST_CASE("a deadline acts once its time is up", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::Event acted(loop.executor());
        net::Deadline deadline(loop.executor(), 1ms, [&] { acted.notify(); });
        bool in_time = co_await acted.wait_for(10s);
        CHECK(in_time);
        CHECK(deadline.expired());
    });
}

TEST_CASE("a deadline that was disarmed or destroyed does nothing", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        int acted = 0;
        net::Deadline disarmed(loop.executor(), 1ms, [&] { ++acted; });
        {
            net::Deadline destroyed(loop.executor(), 1ms, [&] { ++acted; });
        }
        disarmed.disarm();
        co_await net::sleep_for(10ms);
        CHECK(acted == 0);
        CHECK_FALSE(disarmed.expired());
    });
}

TEST_CASE("an extended deadline does not act at its first time", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        bool acted = false;
        net::Deadline deadline(loop.executor(), 1ms, [&] { acted = true; });
        deadline.extend(1h);
        co_await net::sleep_for(10ms);
        CHECK_FALSE(acted);
    });
}

TEST_CASE("an exception that escapes a spawned task does not stop the loop", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto broken = []() -> Awaitable<void> {
            co_await net::sleep_for(0ms);
            throw std::runtime_error("escaped on purpose");
        };
        net::spawn(loop.executor(), broken(), "broken on purpose");
        co_await net::sleep_for(5ms);
        SUCCEED();
    });
}

TEST_CASE("a spawned task ends when its signal is emitted", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::Event ended(loop.executor());
        auto sleeper = [](net::Event& end) -> Awaitable<void> {
            co_await net::sleep_for(1h);
            end.notify();
        };
        auto cancel = net::spawn_cancellable(loop.executor(), sleeper(ended), "sleeper");
        co_await net::sleep_for(1ms);
        cancel->emit(asio::cancellation_type::terminal);
        bool woken = co_await ended.wait_for(10s);
        CHECK(woken);
    });
}

TEST_CASE("a cancellable task may end at once and its signal outlive it", "[net][task]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto nothing = []() -> Awaitable<void> { co_return; };
        auto cancel = net::spawn_cancellable(loop.executor(), nothing(), "nothing");
        std::weak_ptr<asio::cancellation_signal> dropped =
            net::spawn_cancellable(loop.executor(), nothing(), "nothing");
        co_await net::sleep_for(2ms);
        cancel->emit(asio::cancellation_type::terminal);
        CHECK(dropped.expired());
    });
}
