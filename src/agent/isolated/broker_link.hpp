#pragma once

#include "agent/isolated/broker_settings.hpp"
#include "base/unique_fd.hpp"
#include "http/client.hpp"
#include "http/exchange.hpp"

#include <boost/asio/any_io_executor.hpp>

namespace opensandbox::agent {

/// The agent's way to its broker. Costs nothing before the first use.
class BrokerLink {
  public:
    /// `host` is a borrowed SOCK_SEQPACKET socket: ending our side of it asks the host for a
    /// broker, and the host, or the broker, answers with a packet that carries an O_PATH descriptor
    /// of the broker's listening socket, or with one whose text says why there is none. Another
    /// such packet means another broker in its place. -1: this agent needs none.
    BrokerLink(int host, http::Client& client) : host_(host), client_(&client) {}
    BrokerLink(const BrokerLink&) = delete;
    BrokerLink& operator=(const BrokerLink&) = delete;

    [[nodiscard]] bool wanted() const { return host_ >= 0; }
    /// A broker that knows these settings; `unsupported` says why there is none.
    Awaitable<Result<http::Origin>> reach(BrokerSettings settings);
    /// Passes a request on and its answer back. 503 with the contract's code when there is no
    /// broker, but that is what the capabilities tell with 200.
    Awaitable<void> forward(http::Exchange& exchange, BrokerSettings settings);

  private:
    Awaitable<Result<http::Origin>> ask(BrokerSettings settings);
    Status receive();
    Awaitable<Status> await_packet();
    Awaitable<Status> settle(BrokerSettings settings);
    [[nodiscard]] http::Origin origin() const;

    int host_;
    http::Client* client_;
    UniqueFd socket_;       ///< of the broker; empty when none is known
    std::string refusal_;   ///< why there is none, when the host said so
    bool asked_ = false;    ///< for the first one
    bool asking_ = false;   ///< somebody waits for it
    bool settled_ = false;  ///< this broker knows the settings
};

}  // namespace opensandbox::agent
