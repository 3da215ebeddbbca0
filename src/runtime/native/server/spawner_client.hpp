#pragma once

#include "net/stream.hpp"
#include "runtime/native/records/protocol.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace opensandbox::runtime::native {

/// The server's end of one connection to the spawner. All calls run on the event loop.
class SpawnerClient {
  public:
    struct Listeners {
        std::function<void(const std::string& id, const Exit&)> on_exit;
        std::function<void(const Figures&)> on_figures;
        std::function<void()> on_lost;  ///< once, unless close() came first
    };

    /// `unavailable` when nobody listens there, `conflict` when a spawner of another version does:
    /// one that does not answer as this version's would.
    static Awaitable<Result<std::unique_ptr<SpawnerClient>>> connect(std::filesystem::path path,
                                                                     PoolSettings pool,
                                                                     Environment egress,
                                                                     Listeners listeners);
    ~SpawnerClient();
    SpawnerClient(const SpawnerClient&) = delete;
    SpawnerClient& operator=(const SpawnerClient&) = delete;

    /// Sends the request under a number of its own and waits for the reply of that number, as the
    /// calls after it do for theirs. `unavailable` when the connection is lost meanwhile.
    Awaitable<Result<CreateReply>> ask(CreateRequest request);
    Awaitable<Status> destroy(std::string id);
    Awaitable<Result<std::vector<Observed>>> list();
    Awaitable<Status> pause(std::string id);
    Awaitable<Status> resume(std::string id);
    Awaitable<Status> snapshot(std::string id, std::string snapshot, bool for_copies);
    Awaitable<Status> remove_snapshot(std::string snapshot);
    Awaitable<Result<std::string>> output(std::string id);
    /// For parse_view().
    Awaitable<Result<std::string>> view(std::string id);
    /// A line "id serial" for each of at most `limit` sandboxes that run.
    Awaitable<Result<std::string>> slots(std::uint32_t limit);
    /// Says for which images slots are to be kept warm, and that for no others.
    void keep_warm(std::vector<CreateRequest> images);
    [[nodiscard]] const HelloReply& spawner() const;
    /// Whether answers may still come.
    [[nodiscard]] bool connected() const;
    void close();

  private:
    struct State;
    struct Pending;
    explicit SpawnerClient(std::shared_ptr<State> state);

    static Awaitable<void> read_all(std::shared_ptr<State> state);
    Awaitable<std::shared_ptr<Pending>> exchange(std::uint64_t number, std::string bytes,
                                                 std::chrono::seconds limit);
    /// Sends a request that a DoneReply answers.
    template <class Request>
    Awaitable<Status> demand(Request request, std::chrono::seconds limit);
    /// Sends one that TextReplies answer.
    template <class Request>
    Awaitable<Result<std::string>> ask_text(Request request);

    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::runtime::native
