#pragma once

#include "http/message.hpp"
#include "net/stream.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::http {

/// What is left of a connection after an upgrade: the stream and the bytes already read from it.
struct Upgraded {
    std::unique_ptr<net::Stream> stream;
    std::string buffered;
};

/// Runs work that may wait for a disk, beside the event loop.
using FileWorker =
    std::function<Awaitable<Result<std::size_t>>(std::function<Result<std::size_t>()> work)>;

/// One request and its answer. A handler either calls respond() once, or start(), write()… and
/// finish(), or start() with status 101 and upgrade(). A handler that returns without any answer
/// gets a 500 sent for it; one that returns in mid-stream gets the connection cut, so that the
/// client sees a broken body and never a complete-looking one.
class Exchange {
  public:
    virtual ~Exchange() = default;

    [[nodiscard]] virtual const RequestHead& request() const = 0;
    virtual RequestHead& request() = 0;
    virtual BodyReader& body() = 0;
    [[nodiscard]] virtual std::string peer_address() const = 0;

    /// Sends a whole response. Fields that the server adds (Date, request id) come from
    /// response_fields().
    virtual Awaitable<void> respond(Response response) = 0;
    /// Sends the head at once. Chunked unless `head` has a Content-Length (or the status has no
    /// body). Fails with `cancelled` when the client is gone.
    virtual Awaitable<Status> start(ResponseHead head) = 0;
    /// The same together with the first piece of the body, in one go.
    virtual Awaitable<Status> start_with(ResponseHead head, std::string_view first_bytes) = 0;
    /// Sends one piece at once; returns when the kernel took it, so a slow reader slows the caller.
    virtual Awaitable<Status> write(std::string_view bytes) = 0;
    /// Sends the next `length` bytes of the body out of an open file from `offset`, by way of the
    /// kernel alone; pieces that are not in memory yet are sent by `worker`. How many were sent:
    /// fewer when the file ended before. `unsupported`, with none sent, when this connection, this
    /// body (of unknown length) or this file does not go that way: to be written then.
    virtual Awaitable<Result<std::uint64_t>> send_file(std::shared_ptr<const UniqueFd> file,
                                                       std::uint64_t offset, std::uint64_t length,
                                                       FileWorker worker) = 0;
    /// Ends the body, with the last chunk when chunked.
    virtual Awaitable<Status> finish() = 0;
    /// Sends the last piece and the end of the body in one go.
    virtual Awaitable<Status> finish_with(std::string_view last_bytes) = 0;
    /// Ends the body with fields behind it, where it is chunked; elsewhere they are dropped.
    virtual Awaitable<Status> finish_with_trailers(Fields trailers) = 0;
    [[nodiscard]] virtual bool started() const = 0;
    /// Status sent, 0 before.
    [[nodiscard]] virtual int status() const = 0;
    /// Body bytes sent so far.
    [[nodiscard]] virtual std::uint64_t bytes_sent() const = 0;

    /// Returns when the client closed its connection (or the exchange ended). Only after the
    /// request body was read to its end.
    virtual Awaitable<void> client_gone() = 0;
    /// Calls `action` when the client closes its connection before the exchange is over. Cheaper
    /// than client_gone(), as nothing is watched in the first milliseconds; instead of it, not
    /// beside it. Null takes the action back.
    virtual void on_client_gone(std::function<void()> action) = 0;

    /// Takes the connection over; only after start() with status 101.
    virtual Upgraded upgrade() = 0;

    /// Added to every response of this exchange: request id, Vary and the like.
    Fields response_fields;
    /// Path parameters that the router bound, percent-decoded.
    std::vector<std::pair<std::string, std::string>> parameters;
    /// Route template that matched, for metrics ("/v1/sandboxes/{sandbox_id}").
    std::string route;
    /// For logs; set by the first handler that knows.
    std::string request_id;
    std::string sandbox_id;
    /// Whose request it is, as authentication found; empty where there is one tenant.
    std::string tenant;

    /// A bound path parameter; empty when unknown.
    [[nodiscard]] std::string_view parameter(std::string_view name) const {
        for (const auto& [key, value] : parameters) {
            if (key == name) return value;
        }
        return {};
    }
};

using Handler = std::function<Awaitable<void>(Exchange&)>;

}  // namespace opensandbox::http
