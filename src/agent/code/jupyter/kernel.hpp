#pragma once

#include "agent/code/jupyter/run.hpp"
#include "agent/code/jupyter/server.hpp"
#include "agent/code/kernel.hpp"

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

/// The kernel of one session of a Jupyter server (execd contract 5.2 to 5.4). Its WebSocket is
/// opened by the first run and kept.
class JupyterKernel final : public Kernel, public std::enable_shared_from_this<JupyterKernel> {
  public:
    JupyterKernel(std::shared_ptr<Server> server, Session session);

    /// A connection that drops is opened once more; a run whose messages are lost ends with an
    /// error within Limits::lost_reply or Limits::check.
    Awaitable<Status> run(std::string code, std::shared_ptr<EventPump> pump) override;
    Awaitable<Status> interrupt() override;
    Awaitable<Status> shut_down() override;
    [[nodiscard]] bool alive() const override { return !gone_; }

  private:
    /// Gives the kernel's messages to the run, opening the channel unless it is open. `not_found`
    /// when the server has no such kernel.
    Awaitable<Status> connect(std::shared_ptr<Run> run);
    Awaitable<Status> submit(std::shared_ptr<Run> run, std::string request);
    Awaitable<RunEnd> follow(std::shared_ptr<Run> run);
    /// Fails when the server says that the kernel does not work on anything.
    Awaitable<Status> check(std::shared_ptr<Run> run, bool was_idle, bool& idle);

    std::shared_ptr<Server> server_;
    Session session_;
    std::string channel_session_;  ///< lets the server keep messages while the connection is down
    std::shared_ptr<Channel> channel_;
    std::shared_ptr<Run> run_;
    bool gone_ = false;
};

}  // namespace opensandbox::agent::jupyter
