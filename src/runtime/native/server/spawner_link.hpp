#pragma once

#include "base/error.hpp"
#include "net/stream.hpp"
#include "runtime/native/records/spawner_options.hpp"
#include "runtime/native/server/native_runtime.hpp"
#include "runtime/native/server/spawner_client.hpp"

#include <boost/asio/thread_pool.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace opensandbox::runtime::native {

// The spawner's process (spawner_launch.cpp).

/// Starts `executable` in the role `spawner`, away from this process: its own session, no
/// descriptor of ours, a log file of its own. Blocks until it serves; the error is its own. Up to
/// 45 s, since an ending spawner of the same state directory is waited for.
Status launch_spawner(const std::filesystem::path& executable, SpawnerOptions options);

/// Makes the spawner that listens at `socket` end without its sandboxes, which the next one adopts.
/// Succeeds when none listens. Blocks until it ended; one that does not is killed after 45 s, which
/// costs no sandbox either.
Status retire_spawner(const std::filesystem::path& socket);

/// Keeps a server connected to a spawner: finds the one that runs or starts one, and does so again
/// when it is lost. Shared with its own coroutines, so that it may be let go at any time.
class SpawnerLink : public std::enable_shared_from_this<SpawnerLink> {
  public:
    SpawnerLink(asio::any_io_executor executor, asio::thread_pool& blocking, NativeOptions options)
        : executor_(std::move(executor)), blocking_(&blocking), options_(std::move(options)) {}

    Awaitable<Status> start();
    /// The connection; waits up to ten seconds while a lost one is made again.
    Awaitable<Result<std::shared_ptr<SpawnerClient>>> client();
    /// For this spawner and those that take its place.
    void keep_warm(std::vector<CreateRequest> images);
    /// No more reconnecting, no more listeners.
    void stop();

    void on_exit(std::function<void(const std::string&, const Exit&)> listener) {
        listener_ = std::move(listener);
    }
    /// The sandbox is gone: its end needs no remembering.
    void forget(const std::string& id) { reported_.erase(id); }
    [[nodiscard]] Figures figures() const { return figures_; }

  private:
    static Awaitable<Status> connect(std::shared_ptr<SpawnerLink> self);
    static Awaitable<Status> connect_or_launch(std::shared_ptr<SpawnerLink> self);
    static Awaitable<void> reconnect(std::shared_ptr<SpawnerLink> self);
    SpawnerClient::Listeners listeners();
    void report_exit(const std::string& id, const Exit& exit);

    asio::any_io_executor executor_;
    asio::thread_pool* blocking_;
    NativeOptions options_;
    std::shared_ptr<SpawnerClient> client_;  ///< shared with calls in flight
    std::function<void(const std::string&, const Exit&)> listener_;
    std::vector<CreateRequest> warm_;
    std::set<std::string> reported_;  ///< ends that were told, until the sandbox is gone
    Figures figures_;
    bool stopped_ = false;
};

}  // namespace opensandbox::runtime::native
