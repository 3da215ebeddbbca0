#pragma once

#include "http/input_buffer.hpp"
#include "http/server_core.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::http {

struct Refusal;

/// One accepted connection and the requests that come over it, one after the other.
class ServerConnection final : public Tracked,
                               public std::enable_shared_from_this<ServerConnection> {
  public:
    ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<net::Stream> stream);
    ~ServerConnection() override;

    void cut() override;
    [[nodiscard]] bool idle() const override { return idle_; }
    void rest() override;
    /// The client's address, also after the connection was handed over.
    const std::string& peer_address();

    [[nodiscard]] ServerCore& core() { return *core_; }
    [[nodiscard]] Input& input() { return input_; }

    /// The request that is being served is authorized.
    void set_authorized();
    /// Around what may wait for the client to read.
    void begin_send();
    void end_send();

    /// Waits for a request head; its size, or 0 when the connection is to be closed.
    Awaitable<std::size_t> receive_head();
    /// Answers the request whose head is buffered; false when the connection ends with it.
    Awaitable<bool> serve_request(std::size_t head_size);
    /// Lets the peer read the last answer: ends our side and drops what still comes for a while,
    /// since closing over unread bytes resets the connection and loses the answer.
    Awaitable<void> linger();

    /// Watches for the end of the connection while a handler runs; bytes that come meanwhile are
    /// kept. Returns when the client went away or the exchange ended.
    static Awaitable<void> wait_gone(std::shared_ptr<ServerConnection> self, std::uint64_t epoch);
    /// Calls `action` when the client goes before the exchange is over; not at once: see
    /// ServerCore::watch_soon().
    void on_gone(std::function<void()> action);
    void start_gone_watch();
    /// Ends the watch, so that the connection can be read again.
    Awaitable<void> end_watch();
    /// The exchange is over: wakes those who wait for the client to go.
    void end_exchange();
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

    /// Hands the connection over after an upgrade; the server still closes it when it ends.
    Upgraded hand_over();

  private:
    struct Watch;
    static Awaitable<void> watch(std::shared_ptr<ServerConnection> self);
    static Awaitable<void> act_when_gone(std::shared_ptr<ServerConnection> self);
    /// Waits for the first byte of a request; false when the connection is to be closed.
    Awaitable<bool> receive_first();
    Awaitable<void> refuse(Refusal refusal);

    std::shared_ptr<ServerCore> core_;
    Input input_;
    std::unique_ptr<Watch> watch_;  ///< made when a handler first asks
    std::uint64_t epoch_ = 0;       ///< counts exchanges
    std::function<void()> gone_action_;
    std::optional<std::string> peer_;  ///< asked for once
    bool idle_ = false;
    bool young_ = false;    ///< idle, and no sweep has seen it yet
    bool resting_ = false;  ///< idle, and to hold no buffer
    bool closed_ = false;
    bool authorized_ = false;  ///< the request that is being served
    bool known_ = false;       ///< one that came before was
};

/// Runs a connection to its end.
Awaitable<void> serve_connection(std::shared_ptr<ServerConnection> connection);

}  // namespace opensandbox::http
