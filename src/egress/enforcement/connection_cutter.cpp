#include "egress/enforcement/connection_cutter.hpp"

#include "base/log.hpp"

namespace opensandbox::egress {

namespace {

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kInterceptorsTime{50};

Awaitable<void> run(asio::thread_pool& pool, std::shared_ptr<const rules::ConnectionCut> work,
                    std::shared_ptr<std::uint64_t> count) {
    for (int attempt = 1;; ++attempt) {
        std::function<Result<std::size_t>()> job = [work] { return work->run(); };
        const Result<std::size_t> done = co_await net::run_blocking(pool, std::move(job));
        if (done) {
            *count += *done;
            co_return;
        }
        if (attempt == kAttempts) {
            log::error("connections that are no longer allowed could not be cut",
                       {{"error", done.error().message()}});
            co_return;
        }
        co_await net::sleep_for(kPause);
    }
}

Awaitable<void> run_later(Awaitable<void> task) {
    co_await net::sleep_for(kInterceptorsTime);
    co_await std::move(task);
}

}  // namespace

void ConnectionCutter::cut(rules::ConnectionCut what, bool after_interceptor) {
    auto shared = std::make_shared<const rules::ConnectionCut>(std::move(what));
    auto task = run(pool_, std::move(shared), count_);
    if (after_interceptor) task = run_later(std::move(task));
    net::spawn(executor_, std::move(task), "cut connections");
}

Awaitable<void> ConnectionCutter::cut_now(rules::ConnectionCut what) {
    return run(pool_, std::make_shared<const rules::ConnectionCut>(std::move(what)), count_);
}

}  // namespace opensandbox::egress
