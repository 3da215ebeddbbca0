#include "http/server_connection.hpp"

#include "base/log.hpp"
#include "http/access_path.hpp"
#include "http/head_parser.hpp"
#include "http/server_exchange.hpp"

#include <boost/asio/as_tuple.hpp>

namespace opensandbox::http {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kHeadFill = 4 * 1024;
/// Bytes kept while a handler watches its client; a client that sends more is not watched further.
constexpr std::size_t kMaxWatchedBytes = 64 * 1024;
constexpr std::chrono::seconds kLingerTime{2};
constexpr std::uint64_t kLingerBytes = 16 * 1024 * 1024;
constexpr auto kNoDeadline = steady_clock::time_point::max();

/// What an upgrade hands out: the stream, still known to the server so that a drain closes it.
class UpgradedStream final : public net::Stream, public Tracked {
  public:
    UpgradedStream(std::shared_ptr<ServerCore> core, std::unique_ptr<net::Stream> stream,
                   Standing standing)
        : core_(std::move(core)), stream_(std::move(stream)) {
        core_->add(*this, standing);
        if (standing == Standing::unauthorized) {
            send_timeout_ = core_->options.unauthorized_send_timeout;
        }
    }
    ~UpgradedStream() override { core_->remove(*this); }

    void cut() override { stream_->close(); }

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        return stream_->read_some(into);
    }
    Awaitable<Status> write_all(std::span<const std::string_view> pieces) override {
        if (send_timeout_ == send_timeout_.zero()) return stream_->write_all(pieces);
        return write_in_time(pieces);
    }
    Awaitable<void> wait_readable() override { return stream_->wait_readable(); }
    void cancel_read() override { stream_->cancel_read(); }
    bool quiet() override { return stream_->quiet(); }
    void shutdown_send() override { stream_->shutdown_send(); }
    void close() override { stream_->close(); }
    std::string peer_address() const override { return stream_->peer_address(); }
    asio::any_io_executor executor() override { return stream_->executor(); }

  private:
    Awaitable<Status> write_in_time(std::span<const std::string_view> pieces) {
        deadline = steady_clock::now() + send_timeout_;
        auto written = co_await stream_->write_all(pieces);
        deadline = kNoDeadline;
        co_return written;
    }

    std::shared_ptr<ServerCore> core_;
    std::unique_ptr<net::Stream> stream_;
    std::chrono::milliseconds send_timeout_{0};
};

}  // namespace

struct ServerConnection::Watch {
    explicit Watch(const asio::any_io_executor& executor)
        : ended(executor), gone_or_over(executor, asio::steady_timer::time_point::max()) {}
    net::Event ended;
    asio::steady_timer gone_or_over;  ///< cancelled to wake every waiter
    bool running = false;
    bool stop = false;
    bool gone = false;
};

ServerConnection::ServerConnection(std::shared_ptr<ServerCore> core,
                                   std::unique_ptr<net::Stream> stream)
    : core_(std::move(core)), input_(std::move(stream)) {
    core_->add(*this, Standing::waiting);
}

ServerConnection::~ServerConnection() {
    core_->remove(*this);
}

void ServerConnection::cut() {
    closed_ = true;
    if (input_.stream) input_.stream->close();
}

void ServerConnection::rest() {
    // A client that asks again at once, as most do, finds its buffer; a sweep later it is given up.
    if (std::exchange(young_, false) || resting_) return;
    resting_ = true;
    input_.stream->cancel_read();
}

const std::string& ServerConnection::peer_address() {
    if (!peer_) peer_ = input_.stream ? input_.stream->peer_address() : std::string();
    return *peer_;
}

Awaitable<bool> ServerConnection::receive_first() {
    deadline = steady_clock::now() + core_->options.idle_timeout;
    idle_ = young_ = true;
    resting_ = false;
    auto count = co_await input_.fill(kHeadFill);
    if (!count && resting_ && !closed_) {
        input_.buffer.release();
        co_await input_.stream->wait_readable();
        idle_ = false;
        co_return !closed_;
    }
    idle_ = false;
    co_return count && *count > 0 && !closed_;
}

void ServerConnection::set_authorized() {
    authorized_ = known_ = true;
    if (core_->options.tells_authorized) core_->stand(*this, Standing::kept);
}

void ServerConnection::begin_send() {
    const ServerOptions& options = core_->options;
    if (authorized_ || !options.tells_authorized) return;
    deadline = steady_clock::now() + options.unauthorized_send_timeout;
}

void ServerConnection::end_send() {
    if (!authorized_ && core_->options.tells_authorized) deadline = kNoDeadline;
}

Awaitable<std::size_t> ServerConnection::receive_head() {
    core_->stand(*this, known_ ? Standing::waiting_known : Standing::waiting);
    auto& buffer = input_.buffer;
    if (buffer.empty()) {
        bool begun = co_await receive_first();
        if (!begun) co_return 0;
    }
    deadline = steady_clock::now() + core_->options.head_timeout;
    HeadScanner scanner;
    while (true) {
        if (scanner.size() == 0) buffer.consume(leading_empty_lines(buffer.view()));
        bool maybe_empty_line = buffer.view() == "\r";
        auto state =
            maybe_empty_line ? HeadScanner::State::incomplete : scanner.scan(buffer.view());
        bool complete = state == HeadScanner::State::complete;
        if ((complete ? scanner.size() : buffer.size()) > core_->options.max_head) {
            co_await refuse(Refusal(431, "the request head is too large"));
            co_return 0;
        }
        if (state == HeadScanner::State::malformed) {
            co_await refuse(Refusal(400, "a line of the request head does not end in CRLF"));
            co_return 0;
        }
        if (complete) break;
        auto count = co_await input_.fill(kHeadFill);
        if (!count || *count == 0) co_return 0;
    }
    deadline = kNoDeadline;
    co_return scanner.size();
}

Awaitable<bool> ServerConnection::serve_request(std::size_t head_size) {
    RequestHead head;
    Framing framing;
    auto refusal = parse_request_head(input_.buffer.view().substr(0, head_size), head);
    input_.buffer.consume(head_size);
    if (!refusal) refusal = request_framing(head, framing);
    if (!refusal && framing.length > core_->options.max_body) {
        refusal.emplace(413, "the request body is too large");
    }
    auto expect = head.fields.get("Expect");
    if (!refusal && expect && !equal_ignoring_case(*expect, "100-continue")) {
        refusal.emplace(417, "unknown expectation");
    }
    if (refusal) {
        co_await refuse(*refusal);
        co_return false;
    }
    authorized_ = false;
    core_->stand(*this, core_->options.tells_authorized ? Standing::unauthorized : Standing::kept);
    ServerExchange exchange(shared_from_this(), std::move(head), framing);
    std::string failure;
    bool threw = false;
    try {
        co_await core_->handler(exchange);
    } catch (const std::exception& error) {
        threw = true;
        failure = error.what();
    } catch (...) {
        threw = true;
        failure = "unknown exception";
    }
    if (threw) {
        log::error("request handler failed",
                   {{"error", failure},
                    {"target", without_access_tokens(exchange.request().target)},
                    {"request", exchange.request_id}});
    }
    co_return co_await exchange.end();
}

Awaitable<void> ServerConnection::refuse(Refusal refusal) {
    deadline = steady_clock::now() + kLingerTime;
    std::string body = error_body("GENERAL::UNKNOWN_ERROR", refusal.reason);
    std::string out;
    append_status_line(out, refusal.status);
    append_field(out, "Date", core_->date.now());
    append_field(out, "Content-Type", "application/json");
    append_field(out, "Content-Length", std::to_string(body.size()));
    append_field(out, "Connection", "close");
    out += "\r\n";
    out += body;
    auto written = co_await net::write_all(*input_.stream, out);
    if (written) co_await linger();
}

Awaitable<void> ServerConnection::linger() {
    deadline = steady_clock::now() + kLingerTime;
    input_.stream->shutdown_send();
    input_.buffer.take();
    std::uint64_t dropped = 0;
    while (dropped < kLingerBytes) {
        auto count = co_await input_.fill(kHeadFill);
        if (!count || *count == 0) co_return;
        dropped += *count;
        input_.buffer.consume(*count);
    }
}

Awaitable<void> ServerConnection::watch(std::shared_ptr<ServerConnection> self) {
    auto& watch = *self->watch_;
    while (!watch.stop && self->input_.buffer.size() < kMaxWatchedBytes) {
        co_await self->input_.stream->wait_readable();
        if (watch.stop) break;
        auto count = co_await self->input_.fill(kHeadFill);
        if (count && *count > 0) continue;
        bool interrupted = watch.stop && !count && count.error().code() == ErrorCode::cancelled;
        if (!interrupted) {
            watch.gone = true;
            watch.gone_or_over.cancel();
        }
        break;
    }
    watch.running = false;
    watch.ended.notify();
}

Awaitable<void> ServerConnection::wait_gone(std::shared_ptr<ServerConnection> self,
                                            std::uint64_t epoch) {
    if (self->epoch_ != epoch || !self->input_.stream) co_return;
    if (!self->watch_) self->watch_ = std::make_unique<Watch>(self->core_->executor);
    auto& watch = *self->watch_;
    if (watch.gone) co_return;
    if (!watch.running) {
        watch.running = true;
        net::spawn(self->core_->executor, ServerConnection::watch(self), "http client watch");
    }
    co_await watch.gone_or_over.async_wait(asio::as_tuple(asio::use_awaitable));
}

void ServerConnection::on_gone(std::function<void()> action) {
    gone_action_ = std::move(action);
    if (gone_action_) core_->watch_soon(shared_from_this());
}

void ServerConnection::start_gone_watch() {
    if (!gone_action_ || !input_.stream) return;
    net::spawn(core_->executor, act_when_gone(shared_from_this()), "http client watch");
}

Awaitable<void> ServerConnection::act_when_gone(std::shared_ptr<ServerConnection> self) {
    std::uint64_t epoch = self->epoch_;
    co_await wait_gone(self, epoch);
    if (self->epoch_ != epoch) co_return;
    if (auto action = std::exchange(self->gone_action_, nullptr)) action();
}

Awaitable<void> ServerConnection::end_watch() {
    if (!watch_) co_return;
    while (watch_->running) {
        watch_->stop = true;
        input_.stream->cancel_read();
        co_await watch_->ended.wait();
    }
    watch_->stop = false;
}

void ServerConnection::end_exchange() {
    ++epoch_;
    gone_action_ = nullptr;
    if (watch_) watch_->gone_or_over.cancel();
}

Upgraded ServerConnection::hand_over() {
    bool cuttable = !authorized_ && core_->options.tells_authorized;
    core_->stand(*this, Standing::kept);
    auto stream = std::make_unique<UpgradedStream>(
        core_, std::move(input_.stream), cuttable ? Standing::unauthorized : Standing::kept);
    return {std::move(stream), input_.buffer.take()};
}

Awaitable<void> serve_connection(std::shared_ptr<ServerConnection> connection) {
    while (true) {
        std::size_t head_size = co_await connection->receive_head();
        if (head_size == 0) co_return;
        bool again = co_await connection->serve_request(head_size);
        if (!again || connection->core().draining) co_return;
    }
}

}  // namespace opensandbox::http
