#pragma once

#include "http/client.hpp"
#include "http/head_parser.hpp"
#include "http/input_buffer.hpp"
#include "net/task.hpp"

#include <memory>
#include <optional>
#include <string>

namespace opensandbox::http {

class ClientPool;

/// A request body on its way over a connection, sent by a coroutine of its own so that an early
/// response is seen.
class BodySender : public std::enable_shared_from_this<BodySender> {
  public:
    /// `body` and `stream` are borrowed until wait() has returned. Without a length the body goes
    /// out chunked; a body that does not keep to its length is broken off.
    BodySender(asio::any_io_executor executor, BodyReader& body, net::Stream& stream,
               std::optional<std::uint64_t> length);

    void start();
    /// Breaks the sending off; wait() tells when it has ended.
    void stop();
    Awaitable<void> wait();
    /// Called whenever a piece was sent: a limit on the wait for an answer starts again.
    std::function<void()> progress;
    [[nodiscard]] bool running() const { return running_; }
    /// Every byte was sent.
    [[nodiscard]] bool complete() const { return complete_; }
    /// Reading the body failed: the request can never be completed.
    [[nodiscard]] const std::optional<Error>& body_failure() const { return body_failure_; }

  private:
    static Awaitable<void> run(std::shared_ptr<BodySender> self);
    Awaitable<void> send();
    void fail(Error error);

    asio::any_io_executor executor_;
    BodyReader& body_;
    net::Stream& stream_;
    std::optional<std::uint64_t> length_;
    std::uint64_t sent_ = 0;
    bool running_ = false;
    bool stopped_ = false;
    bool complete_ = false;
    std::optional<Error> body_failure_;
    std::shared_ptr<asio::cancellation_signal> cancel_;
    net::Event ended_;
};

/// One connection of a client: sends a request, receives the head of its response.
class ClientConnection {
  public:
    ClientConnection(std::unique_ptr<net::Stream> stream, bool used_before)
        : input_(std::move(stream)), used_before_(used_before) {}

    [[nodiscard]] Input& input() { return input_; }
    [[nodiscard]] bool used_before() const { return used_before_; }
    /// Whether any byte of a response has arrived.
    [[nodiscard]] bool answered() const { return answered_; }

    /// Receives heads until a final one (or 101); interim ones are dropped.
    Awaitable<Result<ParsedResponse>> receive_head(std::size_t max_head);

  private:
    Awaitable<Result<std::size_t>> receive_head_bytes(std::size_t max_head);

    Input input_;
    bool used_before_;
    bool answered_ = false;
};

/// A response whose head has arrived over `connection`. The connection goes back to the pool under
/// `origin` once the body was read to its end, if `keep` allows it. `sender` is null or the request
/// body still on its way.
std::unique_ptr<ClientResponse> make_client_response(std::shared_ptr<ClientPool> pool,
                                                     std::string origin,
                                                     std::unique_ptr<ClientConnection> connection,
                                                     ParsedResponse response, Framing framing,
                                                     bool keep, std::shared_ptr<BodySender> sender);

}  // namespace opensandbox::http
