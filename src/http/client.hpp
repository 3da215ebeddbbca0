#pragma once

#include "http/exchange.hpp"
#include "http/message.hpp"
#include "net/stream.hpp"
#include "net/tls.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace opensandbox::http {

/// Where a client connects: a host and port, over TCP or TLS, or a Unix socket path.
struct Origin {
    static Origin unix_socket(std::string path);

    std::string host;
    std::uint16_t port = 0;
    std::string socket_path;
    /// Not null: TLS, by its settings. Connections with different settings are kept apart.
    std::shared_ptr<net::TlsClient> tls;
};

/// Breaks off a request whose response has not arrived yet.
class AbortHandle {
  public:
    AbortHandle() = default;
    AbortHandle(const AbortHandle&) = delete;
    AbortHandle& operator=(const AbortHandle&) = delete;
    /// The send() that this was given to fails with `cancelled`, now or when it begins.
    void abort();
    [[nodiscard]] bool aborted() const { return aborted_; }
    /// For the client: what abort() calls while a connection is in use; null when none is.
    void attach(std::function<void()> close) { close_ = std::move(close); }

  private:
    bool aborted_ = false;
    std::function<void()> close_;
};

/// A request to send. The body is `content`, or read from `stream` when that is set (chunked unless
/// it declares a length). Host and framing fields are added when missing.
struct ClientRequest {
    ClientRequest() = default;
    ClientRequest(std::string method, std::string target, Fields fields = {})
        : head(std::move(method), std::move(target), std::move(fields)) {}

    RequestHead head;
    std::string content;
    BodyReader* stream = nullptr;  ///< borrowed until the response's head has arrived
    /// Goes on sending `stream` after the response's head has arrived, as a proxy must: `stream` is
    /// then borrowed until ClientResponse::stop_sending() has returned. Otherwise send() waits
    /// until the body is sent, or stops sending it when the status is an error.
    bool full_duplex = false;
    /// For connecting, where it is shorter than the client's; 0: the client's.
    std::chrono::milliseconds connect_timeout{0};
    /// Ends send() from another coroutine; borrowed until send() has returned.
    AbortHandle* abort = nullptr;
};

/// A response whose body is still to be read. Its connection goes back to the pool once the body
/// was read to the end, and is closed when this is destroyed before.
class ClientResponse {
  public:
    virtual ~ClientResponse() = default;
    [[nodiscard]] virtual const ResponseHead& head() const = 0;
    virtual BodyReader& body() = 0;
    /// How much of the body is left when all of it has arrived; empty when more is to come, or that
    /// is not known.
    [[nodiscard]] virtual std::optional<std::size_t> received_rest() const = 0;
    /// After status 101: takes the connection over.
    virtual Upgraded upgrade() = 0;
    /// Closes the connection now; a read in flight ends with `cancelled`.
    virtual void abort() = 0;
    /// Waits until nothing reads from the request's `stream` any more, breaking off what was not
    /// sent yet. Only after a request in full duplex.
    virtual Awaitable<void> stop_sending() = 0;
};

struct ClientOptions {
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::milliseconds head_timeout{0};  ///< 0: no limit on the wait for the response head
    std::size_t max_head = 256 * 1024;
    std::size_t max_idle_per_origin = 32;
    std::chrono::milliseconds idle_timeout{30'000};
};

/// An HTTP/1.1 client with keep-alive pools per origin. Follows no redirects, keeps no cookies.
/// A kept connection that the server has closed is not used. One that proves dead only after the
/// request was written, before any byte of a response, is replaced once and the request sent again,
/// provided that it can be sent again without harm: no `stream`, and a method that is idempotent
/// (or an Idempotency-Key).
class Client {
  public:
    explicit Client(asio::any_io_executor executor, ClientOptions options = {});
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    /// `unavailable` when no connection could be made, `invalid_argument` when a file of its TLS
    /// settings is wrong, `timeout`, `bad_gateway` when it broke or
    /// answered garbage.
    Awaitable<Result<std::unique_ptr<ClientResponse>>> send(Origin origin, ClientRequest request);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::http
