// One of those who share a pool by Redis: pool_member NAME REDIS-URL MAX-IDLE [LOCK-MS]. Obeys the
// lines of its input, one answer a line.
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <iostream>
#include <opensandbox/blocking.hpp>
#include <opensandbox/pool.hpp>
#include <sstream>
#include <unistd.h>

using namespace opensandbox::sdk;
namespace asio = boost::asio;

namespace {

AcquirePolicy policy_of(const std::string& name) {
    for (auto policy : {AcquirePolicy::fail_fast, AcquirePolicy::retry_next_idle,
                        AcquirePolicy::retry_next_idle_then_create}) {
        if (to_string(policy) == name) return policy;
    }
    return AcquirePolicy::direct_create;
}

std::string failure(const Error& error) {
    return "error " + error.wire_code() + " " + error.message();
}

template <class T>
std::string told(const Result<T>& result) {
    return result ? "ok" : failure(result.error());
}

asio::awaitable<std::string> obey(SandboxPool& pool, std::istringstream line) {
    std::string word;
    line >> word;
    if (word == "acquire") {
        std::string name;
        line >> name;
        auto sandbox = co_await pool.acquire(AcquireOptions(policy_of(name)));
        if (!sandbox) co_return failure(sandbox.error());
        CommandRequest request("echo $((6 * 7))");
        auto done = co_await sandbox->commands().run(request);
        if (!done) co_return failure(done.error());
        co_return "id " + sandbox->id() + " " + done->output.substr(0, done->output.find('\n'));
    }
    if (word == "snapshot") {
        auto shot = co_await pool.snapshot();
        if (!shot) co_return failure(shot.error());
        co_return std::string(to_string(shot->state)) + " " + std::to_string(shot->idle_count) +
            " " + std::to_string(shot->max_idle) + (shot->primary ? " primary" : " other");
    }
    if (word == "resize") {
        std::size_t most = 0;
        line >> most;
        co_return told(co_await pool.resize(most));
    }
    if (word == "entries") {
        auto entries = co_await pool.idle_entries();
        if (!entries) co_return failure(entries.error());
        std::string text = "entries";
        for (const IdleEntry& entry : *entries)
            text += " " + entry.sandbox_id;
        co_return text;
    }
    if (word == "destroy") {
        auto destroyed = co_await pool.destroy();
        if (!destroyed) co_return failure(destroyed.error());
        co_return "destroyed " + std::to_string(destroyed->drained) + " " +
            std::to_string(destroyed->killed);
    }
    if (word == "shutdown") co_return told(co_await pool.shutdown());
    if (word == "start") co_return told(co_await pool.start());
    co_return "what is '" + word + "'?";
}

asio::awaitable<int> serve(SandboxPool pool, EventLoop& loop) {
    Status started = co_await pool.start();
    std::cout << told(started) << std::endl;
    asio::posix::stream_descriptor input(loop.context(), dup(STDIN_FILENO));
    std::string received;
    while (true) {
        boost::system::error_code end;
        const std::size_t size =
            co_await asio::async_read_until(input, asio::dynamic_buffer(received), '\n',
                                            asio::redirect_error(asio::use_awaitable, end));
        if (end) co_return 0;
        std::istringstream line(received.substr(0, size - 1));
        received.erase(0, size);
        std::cout << co_await obey(pool, std::move(line)) << std::endl;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    EventLoop loop;
    Connection server = loop.connect().value();
    PoolOptions options(argv[1], CreateOptions("host"), std::stoul(argv[3]));
    options.store = redis_pool_store(server.executor(), RedisStoreOptions(argv[2])).value();
    options.reconcile_interval = std::chrono::milliseconds(100);
    if (argc > 4) options.primary_lock_ttl = std::chrono::milliseconds(std::stoul(argv[4]));
    return loop.wait(serve(SandboxPool::open(server, options).value(), loop));
}
