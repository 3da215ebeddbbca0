#include "sdk/pool_state.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kAtOnce = 16;

/// Ids to be deleted by several coroutines.
struct Doomed {
    Doomed(const asio::any_io_executor& executor, std::vector<std::string> list)
        : ids(std::move(list)), done(executor) {}
    std::vector<std::string> ids;
    std::size_t next = 0;
    std::size_t workers = 0;
    std::size_t killed = 0;
    net::Event done;
};

Awaitable<void> kill_some(Connection connection, std::shared_ptr<Doomed> doomed) {
    Sandboxes sandboxes(connection);
    while (doomed->next < doomed->ids.size()) {
        auto killed = co_await sandboxes.kill(doomed->ids[doomed->next++]);
        if (killed) ++doomed->killed;
    }
    if (--doomed->workers == 0) doomed->done.notify();
}

Awaitable<void> kill_in_background([[maybe_unused]] std::shared_ptr<void> keep,
                                   Connection connection, std::shared_ptr<Doomed> doomed) {
    doomed->workers = 1;
    co_await kill_some(std::move(connection), std::move(doomed));
}

}  // namespace

void SandboxPool::State::discard(const Self& self, std::vector<std::string> ids) {
    if (ids.empty()) return;
    auto executor = self->connection.executor();
    auto doomed = std::make_shared<Doomed>(executor, std::move(ids));
    net::spawn(executor, kill_in_background(self, self->connection, std::move(doomed)),
               "pool: delete sandboxes");
}

Awaitable<std::size_t> SandboxPool::State::kill_all(std::vector<std::string> ids) {
    auto executor = connection.executor();
    auto doomed = std::make_shared<Doomed>(executor, std::move(ids));
    const std::size_t workers = std::min(kAtOnce, doomed->ids.size());
    if (workers == 0) co_return 0;
    doomed->workers = workers;
    for (std::size_t i = 0; i < workers; ++i)
        net::spawn(executor, kill_some(connection, doomed), "pool: delete sandboxes");
    co_await doomed->done.wait();
    co_return doomed->killed;
}

}  // namespace opensandbox::sdk
