#include "controller/work/work_queue.hpp"

#include "support/event_loop.hpp"

using namespace opensandbox;
using namespace opensandbox::controller;
using namespace std::chrono_literals;

namespace {

kube::ObjectKey key(const std::string& name) {
    return {"s", name};
}

}  // namespace

TEST_CASE("work queue: an object is looked at once at a time, and again for what came meanwhile") {
    test_support::Loop loop;
    loop.run([&]() -> Awaitable<void> {
        int now = 0;
        int most = 0;
        int looks = 0;
        WorkQueue queue(loop.executor(), 4,
                        [&](kube::ObjectKey) -> Awaitable<Result<WorkQueue::Again>> {
                            ++looks;
                            most = std::max(most, ++now);
                            co_await net::sleep_for(20ms);
                            --now;
                            co_return WorkQueue::Again();
                        });
        net::spawn(loop.executor(), queue.run(), "queue");
        queue.add(key("a"));
        queue.add(key("a"));
        while (looks == 0)
            co_await net::sleep_for(1ms);
        queue.add(key("a"));
        queue.add(key("a"));
        while (looks < 2 || queue.busy() > 0)
            co_await net::sleep_for(1ms);
        CHECK(looks == 2);
        CHECK(most == 1);
        queue.stop();
    });
}

TEST_CASE("work queue: no more at once than it has workers, first come first served") {
    test_support::Loop loop;
    loop.run([&]() -> Awaitable<void> {
        std::size_t most = 0;
        std::size_t now = 0;
        std::string order;
        WorkQueue queue(loop.executor(), 2,
                        [&](kube::ObjectKey which) -> Awaitable<Result<WorkQueue::Again>> {
                            order += which.name;
                            most = std::max(most, ++now);
                            co_await net::sleep_for(2ms);
                            --now;
                            co_return WorkQueue::Again();
                        });
        for (const char* name : {"d", "b", "c", "a", "e"})
            queue.add(key(name));
        net::spawn(loop.executor(), queue.run(), "queue");
        while (order.size() < 5 || queue.busy() > 0)
            co_await net::sleep_for(1ms);
        CHECK(order == "dbcae");
        CHECK(most == 2);
        queue.stop();
    });
}

TEST_CASE("work queue: what fails is tried again, and does not hold up others") {
    test_support::Loop loop;
    loop.run([&]() -> Awaitable<void> {
        int tries = 0;
        bool other = false;
        WorkQueue queue(loop.executor(), 1,
                        [&](kube::ObjectKey which) -> Awaitable<Result<WorkQueue::Again>> {
                            if (which.name == "other") {
                                other = true;
                                co_return WorkQueue::Again();
                            }
                            if (++tries < 3) co_return Error(ErrorCode::unavailable, "away");
                            co_return WorkQueue::Again();
                        });
        net::spawn(loop.executor(), queue.run(), "queue");
        queue.add(key("broken"));
        queue.add(key("other"));
        while (tries < 3)
            co_await net::sleep_for(1ms);
        CHECK(other);
        queue.stop();
    });
}

TEST_CASE("work queue: what asks to be seen later is, unless something happens before") {
    test_support::Loop loop;
    loop.run([&]() -> Awaitable<void> {
        int looks = 0;
        WorkQueue queue(loop.executor(), 1,
                        [&](kube::ObjectKey) -> Awaitable<Result<WorkQueue::Again>> {
                            ++looks;
                            co_return looks == 1 ? WorkQueue::Again(5ms) : WorkQueue::Again(1h);
                        });
        net::spawn(loop.executor(), queue.run(), "queue");
        queue.add_after(key("a"), 1ms);
        while (looks < 2)
            co_await net::sleep_for(1ms);
        queue.add(key("a"));
        while (looks < 3)
            co_await net::sleep_for(1ms);
        queue.forget(key("a"));
        queue.stop();
    });
}
