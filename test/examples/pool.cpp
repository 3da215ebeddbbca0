// Sandboxes kept ready, so that who needs one does not wait for it to be made. With an address of
// Redis as its argument it shares the pool with all who name the same.
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <iostream>
#include <opensandbox/blocking.hpp>
#include <opensandbox/pool.hpp>

using namespace opensandbox::sdk;

namespace {

boost::asio::awaitable<void> use(Connection server, std::string redis) {
    PoolOptions options("examples", CreateOptions("host"), 2);
    if (!redis.empty()) {
        options.store = redis_pool_store(server.executor(), RedisStoreOptions(redis)).value();
    }
    SandboxPool pool = SandboxPool::open(server, options).value();
    (co_await pool.start()).value();
    boost::asio::steady_timer timer(server.executor());
    while ((co_await pool.snapshot()).value().idle_count < 2) {
        timer.expires_after(std::chrono::milliseconds(20));
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    AcquireOptions ready(AcquirePolicy::fail_fast);
    ready.timeout = std::chrono::minutes(5);
    Sandbox sandbox = (co_await pool.acquire(ready)).value();
    CommandRequest hello("echo ready before it was asked for");
    Execution done = (co_await sandbox.commands().run(hello)).value();
    std::cout << done.output;
    (co_await sandbox.kill()).value();  // a used sandbox never goes back

    (co_await pool.shutdown()).value();
    const std::size_t left = (co_await pool.release_idle()).value();
    std::cout << "released " << (left > 0 ? "the rest" : "nothing") << "\n";
}

boost::asio::awaitable<bool> run(Connection server, std::string redis) {
    co_await use(server, redis);
    co_return true;
}

}  // namespace

int main(int argc, char** argv) {
    EventLoop loop;
    Connection server = loop.connect().value();
    return loop.wait(run(server, argc > 1 ? argv[1] : "")) ? 0 : 1;
}
