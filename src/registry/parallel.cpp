#include "registry/parallel.hpp"

#include "base/scope_exit.hpp"
#include "net/task.hpp"

#include <algorithm>
#include <optional>

namespace opensandbox::registry {
namespace {

struct Batch {
    explicit Batch(asio::any_io_executor executor) : ended(std::move(executor)) {}
    std::size_t count = 0;
    std::size_t next = 0;
    std::size_t running = 0;
    std::function<Awaitable<Status>(std::size_t)> job;
    std::shared_ptr<bool> stop;
    std::optional<Error> failure;
    net::Event ended;

    void fail(const Error& error) {
        if (!failure) failure = error;
        *stop = true;
    }
};

Awaitable<void> work(std::shared_ptr<Batch> batch) {
    bool whole = false;
    ScopeExit leave([&] {
        if (!whole) batch->fail(Error(ErrorCode::internal, "a transfer was broken off"));
        --batch->running;
        batch->ended.notify();
    });
    while (!*batch->stop && batch->next < batch->count) {
        std::size_t mine = batch->next++;
        auto done = co_await batch->job(mine);
        if (!done) batch->fail(done.error());
    }
    whole = true;
}

}  // namespace

Awaitable<Status> run_in_parallel(asio::any_io_executor executor, std::size_t count,
                                  std::size_t width,
                                  std::function<Awaitable<Status>(std::size_t)> job,
                                  std::shared_ptr<bool> stop) {
    auto batch = std::make_shared<Batch>(executor);
    batch->count = count;
    batch->job = std::move(job);
    batch->stop = std::move(stop);
    for (std::size_t i = 0; i < std::min(count, width); ++i) {
        ++batch->running;
        net::spawn(executor, work(batch), "registry transfer");
    }
    while (batch->running > 0)
        co_await batch->ended.wait();
    if (batch->failure) co_return *batch->failure;
    co_return Status();
}

}  // namespace opensandbox::registry
