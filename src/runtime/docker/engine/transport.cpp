#include "runtime/docker/engine/transport.hpp"

#include "net/task.hpp"
#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/failure.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

using std::chrono::milliseconds;

/// What our calls are written for and tested with.
constexpr int kMajor = 1;
constexpr int kPreferredMinor = 41;
/// The newest that an engine may insist on.
constexpr int kNewestMinor = 51;
constexpr int kOldestMinor = 24;
/// Of an error's answer.
constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kErrorPiece = 4096;

http::Origin origin_of(const EngineAddress& address) {
    if (!address.socket_path.empty()) return http::Origin::unix_socket(address.socket_path);
    http::Origin origin(address.host, address.port);
    if (address.tls) {
        net::TlsSettings settings;
        settings.ca_file = address.ca_file;
        settings.cert_file = address.cert_file;
        settings.key_file = address.key_file;
        settings.verify = address.verify;
        origin.tls = std::make_shared<net::TlsClient>(std::move(settings));
    }
    return origin;
}

http::ClientOptions client_options(const EngineOptions& options, milliseconds head_timeout) {
    http::ClientOptions client;
    client.connect_timeout = options.connect_timeout;
    client.head_timeout = head_timeout;
    return client;
}

std::string seconds_text(milliseconds time) {
    auto millis = time.count();
    if (millis % 1000 == 0) return std::to_string(millis / 1000) + " s";
    return std::to_string(millis) + " ms";
}

std::string name_of(const EngineAddress& address) {
    return "the Docker engine at " + address.text;
}

/// min(ours, the engine's), or the engine's oldest where that is newer.
Result<ApiVersion> choose_version(const EngineVersion& engine) {
    ApiVersion oldest(kMajor, kOldestMinor);
    ApiVersion newest(kMajor, kNewestMinor);
    std::string theirs =
        std::to_string(engine.api_version.major) + "." + std::to_string(engine.api_version.minor);
    if (engine.api_version < oldest) {
        return Error(ErrorCode::unavailable,
                     "speaks API version " + theirs + ", but 1.24 or newer is needed");
    }
    if (engine.min_api_version > newest) {
        return Error(ErrorCode::unavailable,
                     "speaks no API version of 1." + std::to_string(kNewestMinor) + " or older");
    }
    ApiVersion chosen = std::min(ApiVersion(kMajor, kPreferredMinor), engine.api_version);
    return std::max(chosen, engine.min_api_version);
}

/// Breaks a call off when its time is up, whatever it waits for.
struct Breaker {
    void operator()() {
        abort.abort();
        if (response) response->abort();
    }
    http::AbortHandle abort;
    std::unique_ptr<http::ClientResponse> response;
};

Awaitable<bool> is_cancelled() {
    auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

/// What comes within the limit, also when the rest does not: of an answer that is an error anyway.
template <class Reader>
Awaitable<std::string> read_error_body(Reader& reader) {
    std::string body;
    std::string piece(kErrorPiece, '\0');
    while (body.size() < kMaxErrorBody) {
        auto count = co_await reader.read_some(piece);
        if (!count || *count == 0) break;
        body.append(piece, 0, *count);
    }
    co_return body;
}

Error cancelled_error() {
    return {ErrorCode::cancelled, "the call was cancelled"};
}

}  // namespace

EngineStream::EngineStream(asio::any_io_executor executor, std::string address, std::string shown,
                           std::unique_ptr<http::ClientResponse> response,
                           milliseconds silence_limit)
    : executor_(std::move(executor)),
      address_(std::move(address)),
      shown_(std::move(shown)),
      response_(std::move(response)),
      silence_limit_(silence_limit) {}

Error EngineStream::named(const Error& error) const {
    return error.within(address_);
}

Awaitable<Result<std::size_t>> EngineStream::read_some(std::span<char> into) {
    bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    std::optional<net::Deadline> deadline;
    if (silence_limit_.count() > 0) {
        deadline.emplace(executor_, silence_limit_, [this] { response_->abort(); });
    }
    auto count = co_await response_->body().read_some(into);
    bool silent = deadline && deadline->expired();
    deadline.reset();
    co_await asio::this_coro::throw_if_cancelled(throws);
    if (silent) {
        co_return named(Error(ErrorCode::timeout,
                              shown_ + ": nothing came for " + seconds_text(silence_limit_)));
    }
    if (count) co_return *count;
    co_return named(count.error().within(shown_));
}

Transport::Transport(asio::any_io_executor executor, EngineAddress address, EngineOptions options)
    : executor_(executor),
      address_(std::move(address)),
      options_(options),
      origin_(origin_of(address_)),
      calls_(executor, client_options(options, milliseconds(0))),
      streams_(executor, client_options(options, options.call_timeout)) {}

Error Transport::named(const Error& error) const {
    return error.within(name_of(address_));
}

/// Gives a failure of the connection its code and its names. A connection that failed may mean
/// another engine at the next try, with another version.
Error Transport::judge(const EngineCall& call, const Error& error) {
    ErrorCode code = error.code();
    if (code == ErrorCode::cancelled) return named(error);
    version_.reset();
    bool keeps = code == ErrorCode::timeout || code == ErrorCode::bad_gateway ||
                 code == ErrorCode::unavailable || code == ErrorCode::too_large;
    if (!keeps) code = ErrorCode::unavailable;
    if (code == ErrorCode::too_large) code = ErrorCode::bad_gateway;
    return named(Error(code, call.shown() + ": " + error.message()));
}

Status Transport::check(const EngineCall& call, int status, std::string_view body) const {
    bool accepted = std::ranges::find(call.accepted, status) != call.accepted.end();
    if ((status >= 200 && status < 300) || accepted) return Status();
    if (status >= 400) return named(error_of_status(status, body));
    return named(Error(ErrorCode::bad_gateway,
                       call.shown() + ": answered with status " + std::to_string(status)));
}

http::ClientRequest Transport::request_of(EngineCall& call) const {
    std::string target = address_.path_prefix;
    if (call.versioned && version_) {
        target += "/v" + std::to_string(version_->major) + "." + std::to_string(version_->minor);
    }
    target += call.path + call.query;
    http::ClientRequest request(call.method, std::move(target), call.fields);
    if (!call.content_type.empty()) request.head.fields.set("Content-Type", call.content_type);
    request.content = call.content;
    request.stream = call.stream;
    return request;
}

Awaitable<Result<EngineReply>> Transport::exchange(EngineCall& call) {
    milliseconds limit = call.limit.count() > 0 ? call.limit : options_.call_timeout;
    Breaker breaker;
    net::Deadline deadline(executor_, limit, [&breaker] { breaker(); });
    http::ClientRequest request = request_of(call);
    request.abort = &breaker.abort;
    auto late = [&] {
        return named(
            Error(ErrorCode::timeout, call.shown() + ": no answer within " + seconds_text(limit)));
    };
    auto response = co_await calls_.send(origin_, std::move(request));
    if (deadline.expired()) co_return late();
    bool cancelled = co_await is_cancelled();
    if (cancelled) co_return named(cancelled_error());
    if (!response) co_return judge(call, response.error());
    breaker.response = std::move(*response);
    EngineReply reply;
    reply.status = breaker.response->head().status;
    reply.fields = breaker.response->head().fields;
    if (reply.status >= 300) {
        reply.body = co_await read_error_body(breaker.response->body());
        if (deadline.expired()) co_return late();
        co_return reply;
    }
    auto body = co_await http::read_all(breaker.response->body(), options_.max_document);
    if (deadline.expired()) co_return late();
    if (!body) co_return judge(call, body.error());
    reply.body = std::move(*body);
    co_return reply;
}

Awaitable<Result<EngineReply>> Transport::call(EngineCall call) {
    bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    Result<EngineReply> reply = EngineReply();
    bool known = !call.versioned || version_.has_value();
    if (!known) {
        auto version = co_await negotiate();
        if (!version) reply = version.error();
    }
    if (reply) reply = co_await exchange(call);
    co_await asio::this_coro::throw_if_cancelled(throws);
    if (!reply) co_return reply.error();
    auto verdict = check(call, reply->status, reply->body);
    if (!verdict) co_return verdict.error();
    co_return reply;
}

Awaitable<Result<json::value>> Transport::fetch(EngineCall call) {
    std::string shown = call.shown();
    auto reply = co_await this->call(std::move(call));
    if (!reply) co_return reply.error();
    auto document = json::parse(reply->body);
    if (document) co_return std::move(*document);
    co_return named(Error(ErrorCode::bad_gateway,
                          shown + ": answered with no JSON: " + document.error().message()));
}

Awaitable<Result<std::unique_ptr<EngineStream>>> Transport::begin(EngineCall& call,
                                                                  milliseconds silence) {
    http::ClientRequest request = request_of(call);
    auto response = co_await streams_.send(origin_, std::move(request));
    bool cancelled = co_await is_cancelled();
    if (cancelled) co_return named(cancelled_error());
    if (!response) co_return judge(call, response.error());
    int status = (*response)->head().status;
    milliseconds patience = status < 300 ? silence : options_.call_timeout;
    auto stream = std::make_unique<EngineStream>(executor_, name_of(address_), call.shown(),
                                                 std::move(*response), patience);
    std::string body;
    if (status >= 300) body = co_await read_error_body(*stream);
    auto verdict = check(call, status, body);
    if (!verdict) co_return verdict.error();
    co_return stream;
}

Awaitable<Result<std::unique_ptr<EngineStream>>> Transport::open(EngineCall call,
                                                                 milliseconds silence_limit) {
    bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    Result<std::unique_ptr<EngineStream>> stream = std::unique_ptr<EngineStream>();
    bool known = !call.versioned || version_.has_value();
    if (!known) {
        auto version = co_await negotiate();
        if (!version) stream = version.error();
    }
    if (stream) stream = co_await begin(call, silence_limit);
    co_await asio::this_coro::throw_if_cancelled(throws);
    co_return stream;
}

Awaitable<Result<EngineVersion>> Transport::negotiate() {
    EngineCall call("GET", "/version");
    call.versioned = false;
    auto document = co_await fetch(std::move(call));
    if (!document) co_return document.error();
    auto version = decode_version(*document);
    if (!version) co_return named(version.error());
    auto chosen = choose_version(*version);
    if (!chosen) co_return named(chosen.error());
    version_ = *chosen;
    co_return version;
}

Awaitable<Result<ApiVersion>> Transport::api_version() {
    if (!version_) {
        auto version = co_await negotiate();
        if (!version) co_return version.error();
    }
    co_return *version_;
}

}  // namespace opensandbox::runtime::docker
