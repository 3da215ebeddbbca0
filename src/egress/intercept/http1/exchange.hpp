#pragma once

#include "egress/intercept/core/relay.hpp"
#include "egress/intercept/core/request_guard.hpp"
#include "http/head_parser.hpp"
#include "http/incoming_body.hpp"
#include "http/input_buffer.hpp"
#include "net/task.hpp"

#include <memory>
#include <optional>
#include <string>

/// The inside of relay_http1(): two halves that share one connection pair.
namespace opensandbox::egress::http1 {

/// A request that was sent on and whose answer is not complete.
struct Exchange {
    std::string method;
    std::string upgrade;      ///< protocol asked for; empty: none
    bool old_client = false;  ///< of HTTP/1.0: no chunks, and the connection ends with the answer
    bool answered = false;    ///< something of the final answer went to the client
    RequestTreatment treatment;
};

/// Shared by both halves and what they wait for.
struct Connection {
    Connection(RequestGuard& g, const RelayLimits& l, IdleWatch& watch,
               std::unique_ptr<net::Stream> c)
        : guard(g),
          limits(l),
          client(std::move(c)),
          changed(client.stream->executor()),
          lease(watch, g.site().watched(), [this] { close(); }) {}

    void close() {
        closed = true;
        client.stream->close();
        if (upstream) upstream->stream->close();
        changed.notify();
    }

    RequestGuard& guard;
    const RelayLimits& limits;
    http::Input client;
    std::optional<http::Input> upstream;
    std::optional<Exchange> exchange;
    bool closed = false;
    bool last = false;     ///< no request is taken after this one
    bool tunnel = false;   ///< bytes both ways from here on
    bool sending = false;  ///< a request body is under way
    bool drain = false;    ///< the client may be sending what nobody will read
    bool responses_running = false;
    net::Event changed;  ///< of all the above, for the half that reads requests
    IdleWatch::Lease lease;
};

/// A body as it is written: as it is, or in chunks.
class BodyWriter {
  public:
    BodyWriter(net::Stream& to, bool chunked) : to_(to), chunked_(chunked) {}
    /// Writes all of `body`; which side failed is told apart.
    enum class End : std::uint8_t { done, source_failed, sink_failed };
    Awaitable<End> copy(http::BodyReader& body);

  private:
    net::Stream& to_;
    bool chunked_;
};

/// How waiting for a head came out; `ended` is an orderly end before its first byte.
enum class HeadEnd : std::uint8_t { complete, ended, lost, malformed, too_large };

/// The half that reads answers; runs until the server's connection is over.
Awaitable<void> relay_responses(std::shared_ptr<Connection> connection);

/// Copies until the source ends; false when either side fails.
Awaitable<bool> copy_bytes(http::Input& from, net::Stream& to);

}  // namespace opensandbox::egress::http1
