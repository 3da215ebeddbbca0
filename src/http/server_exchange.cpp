#include "http/server_exchange.hpp"

#include "base/log.hpp"
#include "http/access_path.hpp"
#include "http/server.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::http {
namespace {

/// What is left of a request body is read and dropped up to this size; past it the connection ends.
constexpr std::uint64_t kMaxDroppedBody = 64 * 1024;
constexpr std::chrono::seconds kMaxDropTime{5};
/// Bytes of a file sent in one go: what a slow disk may cost a thread that others wait for.
constexpr std::size_t kFilePiece = 1024 * 1024;

bool is_bodiless(int status) {
    return status < 200 || status == 204 || status == 304;
}

/// Fields that say how the message is framed; the server writes its own.
bool is_framing_field(std::string_view name) {
    switch (name.size()) {
        case 10:
            return equal_ignoring_case(name, "Connection") ||
                   equal_ignoring_case(name, "Keep-Alive");
        case 14: return equal_ignoring_case(name, "Content-Length");
        case 17: return equal_ignoring_case(name, "Transfer-Encoding");
        default: return false;
    }
}

std::optional<std::uint64_t> declared_length(const Fields& fields) {
    auto text = fields.get("Content-Length");
    if (!text) return std::nullopt;
    std::uint64_t length = 0;
    auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), length);
    if (failure != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return length;
}

Error gone() {
    return {ErrorCode::cancelled, "the client is gone"};
}

}  // namespace

void set_authorized(Exchange& exchange) {
    if (auto* own = dynamic_cast<ServerExchange*>(&exchange)) own->set_authorized();
}

ServerExchange::ServerExchange(std::shared_ptr<ServerConnection> connection, RequestHead head,
                               Framing framing)
    : connection_(std::move(connection)),
      request_(std::move(head)),
      body_(connection_->input(), framing, connection_->core().options.max_body,
            {ErrorCode::cancelled, ErrorCode::protocol}),
      wants_keep_alive_(keeps_alive(request_.fields, request_.minor_version)),
      head_only_(request_.method == "HEAD") {
    if (!body_.done() && request_.minor_version >= 1 && request_.fields.has("Expect")) {
        body_.before_first_read = [this] { return send_continue(); };
    }
}

std::string ServerExchange::peer_address() const {
    return connection_->peer_address();
}

bool ServerExchange::may_keep_connection(const Fields& fields) const {
    if (!wants_keep_alive_ || connection_->core().draining) return false;
    if (fields.has_token("Connection", "close")) return false;
    // The client waits for leave to send its body; whether it sends it now cannot be known.
    if (body_.before_first_read) return false;
    return !body_.broken() && (!body_.length_known() || body_.remaining() <= kMaxDroppedBody);
}

/// The head as it goes out. `length` empty: framing by marking_.
std::string ServerExchange::compose(const ResponseHead& head, std::optional<std::uint64_t> length) {
    std::string out;
    out.reserve(256);
    append_status_line(out, head.status);
    bool upgrading = head.status == 101;
    bool dated = false;
    for (const auto& [name, value] : head.fields) {
        if (!upgrading && is_framing_field(name)) continue;
        dated = dated || equal_ignoring_case(name, "Date");
        append_field(out, name, value);
    }
    for (const auto& [name, value] : response_fields) {
        if (is_framing_field(name) || (dated && equal_ignoring_case(name, "Date"))) continue;
        dated = dated || equal_ignoring_case(name, "Date");
        append_field(out, name, value);
    }
    if (!dated) append_field(out, "Date", connection_->core().date.now());
    if (length) {
        char digits[20];
        auto [end, failure] = std::to_chars(digits, digits + sizeof(digits), *length);
        append_field(out, "Content-Length", {digits, end});
    } else if (marking_ == Marking::chunked) {
        out += "Transfer-Encoding: chunked\r\n";
    }
    if (!upgrading && !keep_) {
        out += "Connection: close\r\n";
    } else if (!upgrading && request_.minor_version == 0) {
        out += "Connection: keep-alive\r\n";
    }
    out += "\r\n";
    return out;
}

Awaitable<Status> ServerExchange::send(std::span<const std::string_view> pieces) {
    if (lost_ || !connection_->input().stream) co_return gone();
    connection_->begin_send();
    auto written = co_await connection_->input().stream->write_all(pieces);
    connection_->end_send();
    if (written) co_return Status();
    lost_ = true;
    co_return gone();
}

Awaitable<Status> ServerExchange::send_continue() {
    constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
    if (phase_ != Phase::fresh) co_return Status();
    co_return co_await send(std::span(&kInterim, 1));
}

Awaitable<void> ServerExchange::respond(Response response) {
    if (phase_ != Phase::fresh) {
        log::error("a second answer to one request was dropped",
                   {{"target", without_access_tokens(request_.target)}, {"request", request_id}});
        co_return;
    }
    phase_ = Phase::finished;
    status_ = response.head.status;
    keep_ = may_keep_connection(response.head.fields);
    std::optional<std::uint64_t> length;
    bool bodiless = is_bodiless(status_);
    if (!bodiless) {
        length = response.body.size();
        // An answer to HEAD may state the length of the body that it leaves out.
        if (head_only_ && response.body.empty()) {
            if (auto stated = declared_length(response.head.fields)) length = stated;
        }
    }
    std::string out = compose(response.head, length);
    bool with_body = !bodiless && !head_only_;
    if (with_body) bytes_sent_ = response.body.size();
    std::array<std::string_view, 2> pieces;
    pieces[0] = out;
    if (with_body) pieces[1] = response.body;
    co_await send(pieces);
}

Awaitable<Status> ServerExchange::start(ResponseHead head) {
    return start_with(std::move(head), {});
}

Awaitable<Status> ServerExchange::start_with(ResponseHead head, std::string_view first_bytes) {
    if (phase_ != Phase::fresh) co_return Error(ErrorCode::internal, "the answer already started");
    if (head.status == 101) {
        connection_->on_gone(nullptr);
        co_await connection_->end_watch();
    }
    phase_ = Phase::streaming;
    status_ = head.status;
    keep_ = may_keep_connection(head.fields);
    auto length = declared_length(head.fields);
    if (is_bodiless(status_)) {
        marking_ = Marking::none;
        if (status_ != 304) length.reset();
    } else if (length) {
        marking_ = Marking::length;
        declared_ = *length;
    } else if (request_.minor_version >= 1) {
        marking_ = Marking::chunked;
    } else {
        marking_ = Marking::close;
        keep_ = false;
    }
    std::string out = compose(head, length);
    co_return co_await send_piece(std::move(out), first_bytes, false);
}

Awaitable<Status> ServerExchange::send_piece(std::string head, std::string_view bytes, bool last) {
    if (lost_) co_return gone();
    if (head_only_ || marking_ == Marking::none) bytes = {};
    if (marking_ == Marking::length && bytes.size() > declared_ - bytes_sent_) {
        co_return Error(ErrorCode::internal, "the answer is longer than its Content-Length");
    }
    if (last && !head_only_ && marking_ == Marking::length &&
        bytes_sent_ + bytes.size() != declared_) {
        co_return Error(ErrorCode::internal, "the answer is shorter than its Content-Length");
    }
    bool chunked = marking_ == Marking::chunked && !head_only_;
    std::string prefix;
    std::array<std::string_view, 5> pieces;
    pieces[0] = head;
    pieces[2] = bytes;
    if (chunked && !bytes.empty()) {
        prefix = chunk_prefix(bytes.size());
        pieces[1] = prefix;
        pieces[3] = "\r\n";
    }
    if (chunked && last) pieces[4] = "0\r\n\r\n";
    bool nothing = head.empty() && bytes.empty() && pieces[4].empty();
    if (!nothing) {
        auto sent = co_await send(pieces);
        if (!sent) co_return sent;
    }
    bytes_sent_ += bytes.size();
    if (last) phase_ = Phase::finished;
    co_return Status();
}

Awaitable<Status> ServerExchange::write(std::string_view bytes) {
    if (phase_ != Phase::streaming) {
        co_return Error(ErrorCode::internal, "no answer is being streamed");
    }
    co_return co_await send_piece({}, bytes, false);
}

Awaitable<Result<std::uint64_t>> ServerExchange::send_file(std::shared_ptr<const UniqueFd> file,
                                                           std::uint64_t offset,
                                                           std::uint64_t length,
                                                           FileWorker worker) {
    if (phase_ != Phase::streaming) {
        co_return Error(ErrorCode::internal, "no answer is being streamed");
    }
    if (head_only_ || marking_ == Marking::none) co_return length;
    if (marking_ != Marking::length) co_return Error(ErrorCode::unsupported, "no known length");
    if (length > declared_ - bytes_sent_) {
        co_return Error(ErrorCode::internal, "the answer is longer than its Content-Length");
    }
    if (lost_ || !connection_->input().stream) co_return gone();
    auto output = connection_->input().stream->share_output();
    if (!output) co_return output.error();
    // A piece may outlive the connection, and with it the number of its descriptor.
    auto socket = std::make_shared<const UniqueFd>(std::move(*output));
    std::uint64_t sent = 0;
    while (sent < length) {
        std::size_t size = std::min<std::uint64_t>(kFilePiece, length - sent);
        std::function<Result<std::size_t>()> piece = [socket, file, size, at = offset + sent] {
            return net::send_from_file(socket->get(), file->get(), at, size);
        };
        Result<std::size_t> got = std::size_t{0};
        // What is there already is out sooner than a thread wakes up.
        if (net::is_in_memory(file->get(), offset + sent, size)) {
            got = piece();
        } else {
            got = co_await worker(std::move(piece));
        }
        if (!connection_->input().stream) co_return gone();
        if (!got && got.error().code() == ErrorCode::cancelled) lost_ = true;
        bool full = !got && got.error().code() == ErrorCode::resource_exhausted;
        if (!got && !full) {
            bool begun = sent > 0 && got.error().code() == ErrorCode::unsupported;
            co_return begun ? Error(ErrorCode::io, got.error().message()) : got.error();
        }
        if (got && *got == 0) break;
        if (got) {
            sent += *got;
            bytes_sent_ += *got;
        }
        if (got && *got == size) continue;
        Status writable = co_await connection_->input().stream->wait_writable();
        if (!writable) lost_ = true;
        if (!writable) co_return gone();
    }
    co_return sent;
}

Awaitable<Status> ServerExchange::finish() {
    return finish_with({});
}

Awaitable<Status> ServerExchange::finish_with(std::string_view last_bytes) {
    if (phase_ != Phase::streaming) {
        co_return Error(ErrorCode::internal, "no answer is being streamed");
    }
    co_return co_await send_piece({}, last_bytes, true);
}

Awaitable<Status> ServerExchange::finish_with_trailers(Fields trailers) {
    bool chunked = marking_ == Marking::chunked && !head_only_;
    if (phase_ != Phase::streaming || !chunked || trailers.size() == 0) co_return co_await finish();
    std::string end = "0\r\n";
    append_fields(end, trailers);
    end += "\r\n";
    std::string_view piece = end;
    auto sent = co_await send(std::span(&piece, 1));
    if (sent) phase_ = Phase::finished;
    co_return sent;
}

// Not a coroutine itself: the wait must not touch this object, which may be gone when it begins.
Awaitable<void> ServerExchange::client_gone() {
    body_.before_read = [this] { return connection_->end_watch(); };
    return ServerConnection::wait_gone(connection_, connection_->epoch());
}

void ServerExchange::on_client_gone(std::function<void()> action) {
    body_.before_read = [this] { return connection_->end_watch(); };
    connection_->on_gone(std::move(action));
}

Upgraded ServerExchange::upgrade() {
    connection_->peer_address();
    phase_ = Phase::upgraded;
    return connection_->hand_over();
}

Awaitable<bool> ServerExchange::drop_rest_of_body() {
    if (body_.done()) co_return true;
    if (body_.before_first_read) co_return false;
    connection_->deadline = std::chrono::steady_clock::now() + kMaxDropTime;
    std::string scratch(16 * 1024, '\0');
    std::uint64_t dropped = 0;
    while (dropped <= kMaxDroppedBody) {
        auto count = co_await body_.read_some(scratch);
        if (!count) co_return false;
        if (*count == 0 || body_.done()) co_return true;
        dropped += *count;
    }
    co_return false;
}

Awaitable<bool> ServerExchange::end() {
    if (phase_ == Phase::fresh) {
        std::string body = error_body("GENERAL::UNKNOWN_ERROR", "An unexpected error occurred.");
        Response failure = json_response(500, std::move(body));
        co_await respond(std::move(failure));
    }
    connection_->end_exchange();
    if (phase_ == Phase::upgraded) co_return false;
    co_await connection_->end_watch();
    if (phase_ == Phase::streaming || lost_) {
        // A body without its end: only a closed connection tells the client.
        connection_->cut();
        co_return false;
    }
    bool reusable = keep_ && co_await drop_rest_of_body();
    if (!reusable && (!body_.done() || !connection_->input().buffer.empty())) {
        co_await connection_->linger();
    }
    co_return reusable;
}

}  // namespace opensandbox::http
