#pragma once

#include "base/error.hpp"
#include "http/exchange.hpp"
#include "http/message.hpp"
#include "mcp/session.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::mcp {

/// Whether a listener on this address is reached from this machine only.
bool is_loopback(std::string_view host);

/// Who may talk to the HTTP transport.
class AccessRules {
  public:
    /// `host` is what is listened on; an empty token asks for none.
    AccessRules(std::string host, std::string token, std::vector<std::string> origins)
        : host_(std::move(host)), token_(std::move(token)), origins_(std::move(origins)) {}

    /// `unauthenticated` without the token. `permission_denied` for pages of foreign origins, and
    /// for names that are not this machine's while only this machine may come: a page whose name
    /// was made to point here (DNS rebinding).
    [[nodiscard]] Status check(const http::RequestHead& request) const;

  private:
    [[nodiscard]] bool allows_origin(std::string_view origin) const;

    std::string host_;
    std::string token_;
    std::vector<std::string> origins_;
};

/// The answers to one POST: waits for them, and sends them as JSON when there is just one that
/// comes soon, else as an event stream.
class StreamOutlet : public Outlet {
  public:
    StreamOutlet(asio::any_io_executor executor, std::size_t expected)
        : arrived_(std::move(executor)), expected_(expected) {}
    void notify(std::string message) override;
    void reply(std::string message) override;
    void abandon() override;

    /// Until every answer was sent, or the client has gone (the calls go on then).
    Awaitable<void> deliver(http::Exchange& exchange);

  private:
    Awaitable<void> deliver_events(http::Exchange& exchange);

    net::Event arrived_;
    std::deque<std::string> messages_;
    std::size_t expected_;  ///< answers that have not come yet
    bool notified_ = false;
    bool closed_ = false;  ///< nobody takes them any more
};

/// One server-sent event.
std::string event_of(std::string_view message);

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
    Awaitable<void> answer(http::Exchange& exchange, Payload payload,
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
