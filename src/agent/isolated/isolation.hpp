#pragma once

#include "agent/files/file_pool.hpp"
#include "agent/isolated/session.hpp"

namespace opensandbox::agent {

/// The isolated sessions of this agent (execd contract 9). Costs nothing before the first use.
class Isolation {
  public:
    static constexpr std::size_t kMaxSessions = 256;

    /// `temporary` is where the output of background runs goes.
    Isolation(asio::any_io_executor executor, Reaper& reaper, FilePool& files,
              std::string temporary);
    Isolation(const Isolation&) = delete;
    Isolation& operator=(const Isolation&) = delete;

    /// Before the first session.
    void configure(IsolationConfig config) { config_ = std::move(config); }
    [[nodiscard]] const IsolationConfig& config() const { return config_; }

    /// `unsupported` when there is no isolation here.
    Awaitable<Result<std::shared_ptr<IsolatedSession>>> create(IsolatedSessionRequest request);
    [[nodiscard]] std::shared_ptr<IsolatedSession> find(std::string_view id) const;
    [[nodiscard]] const std::map<std::string, std::shared_ptr<IsolatedSession>>& sessions() const {
        return sessions_;
    }
    /// Ends it and removes all that it left.
    Awaitable<void> destroy(std::shared_ptr<IsolatedSession> session);
    /// The same for all, when the agent ends.
    Awaitable<void> end_all();

    /// What this host can do, found out by doing it once.
    struct Abilities {
        bool available = false;
        bool userns = false;
        bool overlay = false;
        bool memory_uppers = false;  ///< the disk below upper_root cannot hold uppers
        std::string message;
    };
    Awaitable<Abilities> abilities();

    /// After a run: notes when the uppers hold more than they may.
    Awaitable<void> account(std::shared_ptr<IsolatedSession> session);

    OutputDirectory& outputs() { return outputs_; }

  private:
    Awaitable<void> probe();
    Awaitable<Status> try_session(IsolatedSessionRequest request, bool in_memory);
    Awaitable<Result<Preparation>> prepare(IsolatedSessionRequest request, std::string id,
                                           bool in_memory);
    Awaitable<Status> restrict(std::shared_ptr<IsolatedSession> session);
    void watch_idle(const std::shared_ptr<IsolatedSession>& session);

    asio::any_io_executor executor_;
    Reaper& reaper_;
    FilePool& files_;
    IsolationConfig config_;
    OutputDirectory outputs_;
    std::optional<Abilities> abilities_;
    std::map<std::string, std::shared_ptr<IsolatedSession>> sessions_;
    std::size_t beginning_ = 0;  ///< sessions being built
    bool ending_ = false;
};

}  // namespace opensandbox::agent
