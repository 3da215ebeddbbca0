#include "http/client.hpp"

#include "base/scope_exit.hpp"
#include "http/client_connection.hpp"
#include "http/client_pool.hpp"
#include "http/serialize.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace opensandbox::http {
namespace {

/// Content above this size is sent beside the wait for the response, so that a server that answers
/// early and reads no further does not block us.
constexpr std::size_t kMaxContentAtOnce = 256 * 1024;

Error aborted_error() {
    return {ErrorCode::cancelled, "the request was aborted"};
}

std::string origin_key(const Origin& origin) {
    if (!origin.socket_path.empty()) return "unix:" + origin.socket_path;
    std::string key = origin.host + ":" + std::to_string(origin.port);
    return origin.tls ? "https://" + key : key;
}

/// Connections under one key may stand for each other.
std::string pool_key(const Origin& origin, const std::string& shown) {
    if (!origin.tls) return shown;
    return shown + '\n' + origin.tls->identity();
}

std::string host_field(const Origin& origin) {
    if (!origin.socket_path.empty()) return "localhost";
    bool ipv6 = origin.host.find(':') != std::string::npos;
    std::string host = origin.host;
    if (ipv6) host = "[" + host + "]";
    if (origin.port != (origin.tls ? 443 : 80)) host += ":" + std::to_string(origin.port);
    return host;
}

bool is_idempotent(const RequestHead& head) {
    constexpr std::array<std::string_view, 6> kMethods{"GET",    "HEAD",    "PUT",
                                                       "DELETE", "OPTIONS", "TRACE"};
    return std::find(kMethods.begin(), kMethods.end(), head.method) != kMethods.end() ||
           head.fields.has("Idempotency-Key");
}

/// A body held in memory.
class ContentReader final : public BodyReader {
  public:
    explicit ContentReader(std::string_view content) : rest_(content), size_(content.size()) {}
    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        std::size_t count = std::min(into.size(), rest_.size());
        if (count > 0) std::memcpy(into.data(), rest_.data(), count);
        rest_.remove_prefix(count);
        co_return count;
    }
    std::optional<std::uint64_t> content_length() const override { return size_; }

  private:
    std::string_view rest_;
    std::uint64_t size_;
};

/// What one request needs on any connection.
struct Outgoing {
    Outgoing(std::shared_ptr<ClientPool> p, Origin o, ClientRequest r)
        : pool(std::move(p)),
          origin(std::move(o)),
          key(origin_key(origin)),
          kept(pool_key(origin, key)),
          request(std::move(r)) {}
    std::shared_ptr<ClientPool> pool;
    Origin origin;
    std::string key;   ///< the origin as it is shown
    std::string kept;  ///< of the pool
    ClientRequest request;
    std::optional<std::uint64_t> length;  ///< of the body; empty: chunked
    std::string head;
};

std::optional<std::uint64_t> body_length(const ClientRequest& request) {
    if (request.stream == nullptr) return request.content.size();
    if (auto length = request.stream->content_length()) return length;
    auto text = request.head.fields.get("Content-Length");
    if (!text || text->empty()) return std::nullopt;
    std::uint64_t length = 0;
    auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), length);
    if (failure != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return length;
}

Status compose(Outgoing& out) {
    const RequestHead& head = out.request.head;
    bool clean = is_token(head.method) && !head.target.empty() &&
                 std::all_of(head.target.begin(), head.target.end(), [](char c) {
                     return static_cast<unsigned char>(c) > ' ' && c != 0x7f;
                 });
    if (!clean) return Error(ErrorCode::invalid_argument, "malformed request method or target");
    out.length = body_length(out.request);
    append_request_line(out.head, head.method, head.target);
    if (!head.fields.has("Host")) append_field(out.head, "Host", host_field(out.origin));
    for (const auto& [name, value] : head.fields) {
        bool framing = equal_ignoring_case(name, "Content-Length") ||
                       equal_ignoring_case(name, "Transfer-Encoding");
        if (!framing) append_field(out.head, name, value);
    }
    bool expects_body = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
    if (!out.length) {
        append_field(out.head, "Transfer-Encoding", "chunked");
    } else if (*out.length > 0 || expects_body || out.request.stream != nullptr) {
        append_field(out.head, "Content-Length", std::to_string(*out.length));
    }
    out.head += "\r\n";
    return Status();
}

Awaitable<Result<std::unique_ptr<ClientConnection>>> acquire(Outgoing& out, bool may_reuse) {
    if (may_reuse) {
        if (auto kept = out.pool->take(out.kept)) {
            co_return std::make_unique<ClientConnection>(std::move(kept), true);
        }
    }
    bool local = !out.origin.socket_path.empty();
    auto limit = out.pool->options().connect_timeout;
    if (out.request.connect_timeout.count() > 0) {
        limit = std::min(limit, out.request.connect_timeout);
    }
    Result<std::unique_ptr<net::Stream>> stream = std::unique_ptr<net::Stream>();
    if (local) {
        stream = co_await net::connect_unix(out.origin.socket_path);
    } else if (out.origin.tls) {
        stream = co_await out.origin.tls->connect(out.origin.host, out.origin.port, limit);
    } else {
        stream = co_await net::connect_tcp(out.origin.host, out.origin.port, limit);
    }
    if (!stream) co_return stream.error();
    co_return std::make_unique<ClientConnection>(std::move(*stream), false);
}

/// Sends head and body and receives the response's head. A sender that is still running when this
/// returns belongs to a request in full duplex.
Awaitable<Result<ParsedResponse>> converse(Outgoing& out, ClientConnection& connection,
                                           std::shared_ptr<BodySender>& sender,
                                           std::function<void()> progress) {
    net::Stream& stream = *connection.input().stream;
    ClientRequest& request = out.request;
    ContentReader content(request.content);
    bool beside = request.stream != nullptr || request.content.size() > kMaxContentAtOnce;
    std::array<std::string_view, 2> pieces;
    pieces[0] = out.head;
    if (!beside) pieces[1] = request.content;
    auto written = co_await stream.write_all(pieces);
    if (beside && written) {
        BodyReader& body = request.stream != nullptr ? *request.stream : content;
        sender = std::make_shared<BodySender>(out.pool->executor(), body, stream, out.length);
        sender->progress = std::move(progress);
        sender->start();
    }
    // A failed write is no reason not to look for an answer: it may have come before.
    auto response = co_await connection.receive_head(out.pool->options().max_head);
    if (!sender) co_return response;
    sender->progress = nullptr;
    bool in_duplex = request.full_duplex && request.stream != nullptr;
    if (response && in_duplex) co_return response;
    if (!response || response->head.status >= 400) sender->stop();
    co_await sender->wait();
    if (!response && sender->body_failure()) co_return *sender->body_failure();
    co_return response;
}

using ResponseResult = Result<std::unique_ptr<ClientResponse>>;

/// One try on one connection.
Awaitable<ResponseResult> attempt(Outgoing& out, std::unique_ptr<ClientConnection>& connection) {
    net::Stream& stream = *connection->input().stream;
    AbortHandle* abort = out.request.abort;
    if (abort != nullptr) abort->attach([&stream] { stream.close(); });
    ScopeExit detach([abort] {
        if (abort != nullptr) abort->attach(nullptr);
    });
    std::optional<net::Deadline> deadline;
    auto limit = out.pool->options().head_timeout;
    if (limit.count() > 0) {
        deadline.emplace(out.pool->executor(), limit, [&stream] { stream.close(); });
    }
    std::shared_ptr<BodySender> sender;
    std::function<void()> progress;
    if (deadline) progress = [&deadline, limit] { deadline->extend(limit); };
    auto response = co_await converse(out, *connection, sender, std::move(progress));
    if (deadline && deadline->expired()) {
        co_return Error(ErrorCode::timeout, "no answer from " + out.key + " in time");
    }
    if (abort != nullptr && abort->aborted()) {
        response = aborted_error();
    }
    Framing framing;
    if (response) {
        auto reason = response_framing(*response, out.request.head.method, framing);
        if (reason) {
            response =
                Error(ErrorCode::bad_gateway,
                      "the server answered with a malformed response: " + std::string(*reason));
        }
    }
    if (!response) {
        if (sender) {
            sender->stop();
            co_await sender->wait();
        }
        co_return response.error().within(out.key);
    }
    bool keep = framing.kind != Framing::Kind::until_close &&
                keeps_alive(response->head.fields, response->minor_version) &&
                !out.request.head.fields.has_token("Connection", "close");
    co_return make_client_response(out.pool, out.kept, std::move(connection), std::move(*response),
                                   framing, keep, std::move(sender));
}

Awaitable<ResponseResult> send_request(Outgoing& out) {
    auto composed = compose(out);
    if (!composed) co_return composed.error();
    bool repeatable = out.request.stream == nullptr && is_idempotent(out.request.head);
    AbortHandle* abort = out.request.abort;
    bool may_reuse = true;
    while (true) {
        auto connection = co_await acquire(out, may_reuse);
        if (!connection) co_return connection.error();
        if (abort != nullptr && abort->aborted()) co_return aborted_error();
        auto response = co_await attempt(out, *connection);
        if (response) co_return response;
        bool went_stale = (*connection)->used_before() && !(*connection)->answered() &&
                          response.error().code() == ErrorCode::bad_gateway;
        if (!went_stale || !repeatable) co_return response;
        may_reuse = false;
    }
}

}  // namespace

Origin Origin::unix_socket(std::string path) {
    Origin origin;
    origin.socket_path = std::move(path);
    return origin;
}

void AbortHandle::abort() {
    aborted_ = true;
    if (auto close = std::exchange(close_, nullptr)) close();
}

struct Client::State {
    State(asio::any_io_executor executor, ClientOptions options)
        : pool(std::make_shared<ClientPool>(std::move(executor), options)) {}
    std::shared_ptr<ClientPool> pool;
};

Client::Client(asio::any_io_executor executor, ClientOptions options)
    : state_(std::make_shared<State>(std::move(executor), options)) {}

Client::~Client() {
    state_->pool->close();
}

Awaitable<ResponseResult> Client::send(Origin origin, ClientRequest request) {
    Outgoing out(state_->pool, std::move(origin), std::move(request));
    // A cancelled caller must not unwind while a sender still borrows its body.
    bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto response = co_await send_request(out);
    co_await asio::this_coro::throw_if_cancelled(throws);
    co_return response;
}

}  // namespace opensandbox::http
