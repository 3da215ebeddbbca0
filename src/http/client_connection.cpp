#include "http/client_connection.hpp"

#include "http/serialize.hpp"

#include <boost/asio/this_coro.hpp>

#include <array>

namespace opensandbox::http {
namespace {

constexpr std::size_t kHeadFill = 8 * 1024;
constexpr std::size_t kBodyPiece = 64 * 1024;
constexpr int kMaxInterimResponses = 64;

Error garbled(std::string_view reason) {
    return {ErrorCode::bad_gateway,
            "the server answered with a malformed response: " + std::string(reason)};
}

}  // namespace

BodySender::BodySender(asio::any_io_executor executor, BodyReader& body, net::Stream& stream,
                       std::optional<std::uint64_t> length)
    : executor_(executor),
      body_(body),
      stream_(stream),
      length_(length),
      ended_(std::move(executor)) {}

void BodySender::fail(Error error) {
    body_failure_ = std::move(error);
    // Nothing tells the server that the rest will not come but the end of the connection.
    stream_.close();
}

void BodySender::start() {
    running_ = true;
    cancel_ = net::spawn_cancellable(executor_, run(shared_from_this()), "http request body");
}

void BodySender::stop() {
    if (!running_ || stopped_) return;
    stopped_ = true;
    cancel_->emit(asio::cancellation_type::terminal);
}

Awaitable<void> BodySender::wait() {
    auto self = shared_from_this();
    while (running_)
        co_await ended_.wait();
}

Awaitable<void> BodySender::run(std::shared_ptr<BodySender> self) {
    // After a cancellation the coroutine must still be able to say that it has ended.
    co_await asio::this_coro::throw_if_cancelled(false);
    try {
        co_await self->send();
    } catch (const std::exception& error) {
        self->body_failure_ = Error(ErrorCode::internal, error.what());
    }
    self->running_ = false;
    self->ended_.notify();
}

Awaitable<void> BodySender::send() {
    std::string piece(kBodyPiece, '\0');
    while (!stopped_) {
        auto count = co_await body_.read_some(piece);
        if (stopped_) co_return;
        if (!count) co_return fail(count.error());
        std::string_view bytes(piece.data(), *count);
        sent_ += bytes.size();
        if (length_ && (bytes.empty() ? sent_ != *length_ : sent_ > *length_)) {
            co_return fail(
                Error(ErrorCode::internal, "the request body breaks its declared length"));
        }
        std::string prefix;
        std::array<std::string_view, 3> pieces;
        pieces[1] = bytes;
        if (!length_) {
            prefix = chunk_prefix(bytes.size());
            // The last chunk is followed by the trailers and an empty line.
            if (bytes.empty()) append_fields(prefix, body_.trailers());
            pieces[0] = prefix;
            pieces[2] = "\r\n";
        }
        if (!bytes.empty() || !length_) {
            auto written = co_await stream_.write_all(pieces);
            if (!written) co_return;
            if (progress) progress();
        }
        if (bytes.empty()) {
            complete_ = true;
            co_return;
        }
    }
}

Awaitable<Result<std::size_t>> ClientConnection::receive_head_bytes(std::size_t max_head) {
    HeadScanner scanner;
    while (true) {
        auto state = scanner.scan(input_.buffer.view());
        if (state == HeadScanner::State::malformed) co_return garbled("bare line feed");
        bool complete = state == HeadScanner::State::complete;
        if ((complete ? scanner.size() : input_.buffer.size()) > max_head) {
            co_return garbled("its head is too large");
        }
        if (complete) co_return scanner.size();
        auto count = co_await input_.fill(kHeadFill);
        if (!count) {
            if (count.error().code() == ErrorCode::cancelled) co_return count.error();
            co_return Error(ErrorCode::bad_gateway, count.error().message());
        }
        if (*count == 0) {
            co_return Error(ErrorCode::bad_gateway,
                            "the server closed the connection without an answer");
        }
        answered_ = true;
    }
}

Awaitable<Result<ParsedResponse>> ClientConnection::receive_head(std::size_t max_head) {
    for (int interim = 0; interim < kMaxInterimResponses; ++interim) {
        auto size = co_await receive_head_bytes(max_head);
        if (!size) co_return size.error();
        ParsedResponse response;
        auto reason = parse_response_head(input_.buffer.view().substr(0, *size), response);
        if (reason) co_return garbled(*reason);
        input_.buffer.consume(*size);
        if (response.head.status == 101 || response.head.status >= 200) co_return response;
    }
    co_return garbled("too many interim responses");
}

}  // namespace opensandbox::http
