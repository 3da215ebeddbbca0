#include "egress/filter/connection_cutter.hpp"

#include "base/log.hpp"

namespace opensandbox::egress {

namespace {

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kInterceptorsTime{50};

using Cut = std::shared_ptr<const rules::ConnectionCut>;

Awaitable<Result<std::size_t>> run_once(asio::thread_pool& pool, Cut cut,
                                        ConnectionCutter::Current current) {
    using Connections = rules::ConnectionCut::Connections;
    std::function<Result<Connections>()> list = [cut] { return cut->list(); };
    auto connections = co_await net::run_blocking(pool, std::move(list));
    if (!connections) co_return connections.error();
    if (current) {
        auto now = current();
        if (!now) co_return 0;
        cut = std::make_shared<const rules::ConnectionCut>(std::move(*now));
    }
    auto seen = std::make_shared<const Connections>(std::move(*connections));
    std::function<Result<std::size_t>()> remove = [cut, seen] { return cut->remove_from(*seen); };
    co_return co_await net::run_blocking(pool, std::move(remove));
}

Awaitable<void> run(asio::thread_pool& pool, Cut work, ConnectionCutter::Current current,
                    std::shared_ptr<std::uint64_t> count) {
    for (int attempt = 1;; ++attempt) {
        const Result<std::size_t> done = co_await run_once(pool, work, current);
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

void ConnectionCutter::cut(rules::ConnectionCut what, Current current, bool after_interceptor) {
    auto shared = std::make_shared<const rules::ConnectionCut>(std::move(what));
    auto task = run(pool_, std::move(shared), std::move(current), count_);
    if (after_interceptor) task = run_later(std::move(task));
    net::spawn(executor_, std::move(task), "cut connections");
}

Awaitable<void> ConnectionCutter::cut_now(rules::ConnectionCut what) {
    return run(pool_, std::make_shared<const rules::ConnectionCut>(std::move(what)), nullptr,
               count_);
}

}  // namespace opensandbox::egress
