#pragma once

#include "http/exchange.hpp"
#include "mcp/http_access.hpp"
#include "mcp/session.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace opensandbox::mcp {

/// The streamable HTTP transport at /mcp: POST brings messages and answers with JSON or, where the
/// work takes longer, with an event stream; GET waits for messages of the server; DELETE ends the
/// session that `initialize` began. Sessions that nobody uses end by themselves.
class HttpTransport {
  public:
    struct Limits {
        std::size_t sessions = 100;
        std::chrono::seconds idle{1800};
        std::size_t body = std::size_t{64} << 20U;
    };
    using MakeSession = std::function<std::shared_ptr<Session>()>;

    HttpTransport(asio::any_io_executor executor, AccessRules access, Limits limits,
                  MakeSession make_session);

    Awaitable<void> handle(http::Exchange& exchange);
    /// Gives up all calls and waits for what they undo.
    Awaitable<void> end_all(std::chrono::milliseconds grace);
    /// Runs for ever: ends sessions that were idle too long.
    Awaitable<void> sweep();

  private:
    struct Client {
        std::shared_ptr<Session> session;
        std::chrono::steady_clock::time_point used;
        std::size_t open = 0;    ///< exchanges under way
        bool listening = false;  ///< a GET stream is open
        std::shared_ptr<net::Event> ended;
    };
    Awaitable<void> post(http::Exchange& exchange);
    Awaitable<void> listen(http::Exchange& exchange);
    Awaitable<void> remove(http::Exchange& exchange);
    Awaitable<void> answer(http::Exchange& exchange, const Payload& payload,
                           std::shared_ptr<Client> client, std::string new_id);
    /// Null, and the exchange answered, when there is none.
    Awaitable<std::shared_ptr<Client>> find(http::Exchange& exchange);
    static void end(const std::shared_ptr<Client>& client);

    asio::any_io_executor executor_;
    AccessRules access_;
    Limits limits_;
    MakeSession make_session_;
    std::unordered_map<std::string, std::shared_ptr<Client>> clients_;
    net::Event answered_;
};

}  // namespace opensandbox::mcp
