#pragma once

#include "agent/code/jupyter/run.hpp"
#include "agent/code/jupyter/server.hpp"

#include <memory>
#include <string>

namespace opensandbox::agent::jupyter {

/// The WebSocket of one kernel. It is read all the time, so that pings are answered between runs
/// too; what belongs to no run is dropped. Closed when destroyed.
class Channel {
  public:
    /// Messages go to `run`, from the first one on: the server sends at once what it kept. Fails as
    /// Server::open_channels, and with `timeout`.
    static Awaitable<Result<std::shared_ptr<Channel>>> open(std::shared_ptr<Server> server,
                                                            std::string kernel_id,
                                                            std::string session_id,
                                                            std::shared_ptr<Run> run);

    explicit Channel(std::unique_ptr<http::WebSocketConnection> connection);
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    ~Channel();

    [[nodiscard]] bool is_open() const;
    /// Messages go to this run from now on; null for none.
    void deliver_to(std::shared_ptr<Run> run);
    Awaitable<Status> send(std::string text);
    void close();

  private:
    struct State;
    static Awaitable<void> read(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::agent::jupyter
