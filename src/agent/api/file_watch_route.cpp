#include "agent/api/file_routes.hpp"
#include "agent/files/watch.hpp"
#include "agent/ground/reply.hpp"
#include "base/clock.hpp"
#include "base/json_string.hpp"
#include "base/scope_exit.hpp"
#include "http/event_stream.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <fcntl.h>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMaxWatches = 32;
constexpr std::chrono::seconds kPingEvery{3};
constexpr std::chrono::milliseconds kLookEvery{500};  ///< whether the agent is to end
constexpr std::chrono::milliseconds kSettleAfter{50};

/// What the stream waits for: events of the kernel, and the end of its reader.
class Waiting : public std::enable_shared_from_this<Waiting> {
  public:
    Waiting(asio::any_io_executor executor, UniqueFd fd)
        : wake_(executor), descriptor_(executor, fd.release()) {}

    [[nodiscard]] bool reader_gone() const { return gone_; }
    /// Waits for one of both, at most so long; true when there may be something to read.
    Awaitable<bool> wait_for(std::chrono::nanoseconds time) {
        arm();
        if (!ready_ && !gone_) co_await wake_.wait_for(time);
        co_return std::exchange(ready_, false);
    }
    static Awaitable<void> watch_reader(std::shared_ptr<Waiting> self, Awaitable<void> gone) {
        co_await std::move(gone);
        self->gone_ = true;
        self->wake_.notify();
    }
    void close() {
        boost::system::error_code ignored;
        descriptor_.close(ignored);
    }

  private:
    void arm() {
        if (armed_ || ready_) return;
        armed_ = true;
        descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                               [self = shared_from_this()](const boost::system::error_code& bad) {
                                   self->armed_ = false;
                                   if (bad) return;
                                   self->ready_ = true;
                                   self->wake_.notify();
                               });
    }

    net::Event wake_;
    asio::posix::stream_descriptor descriptor_;
    bool armed_ = false;
    bool ready_ = false;
    bool gone_ = false;
};

Result<bool> recursive_parameter(const http::Exchange& exchange) {
    http::Query query(exchange.request().query());
    std::string_view text = query.get("recursive").value_or("false");
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0" || text.empty()) return false;
    return Error(ErrorCode::invalid_argument, "recursive: must be true or false");
}

std::string watching_event(std::string_view path, bool recursive) {
    std::string out = R"({"type":"watching","path":)";
    append_json_string(out, path);
    out += recursive ? R"(,"recursive":true,"timestamp":)" : R"(,"recursive":false,"timestamp":)";
    append_integer(out, to_millis(now()));
    return out + "}\n\n";
}

std::string ping_event() {
    std::string out = R"({"type":"ping","text":"pong","timestamp":)";
    append_integer(out, to_millis(now()));
    return out + "}\n\n";
}

/// Sends what happens until the watch ends, the reader leaves or the agent is to end. Only one
/// batch is in memory at a time: to a slow reader the kernel's queue is what grows, and overflows.
Awaitable<void> send_events(FileCall call, std::shared_ptr<FileWatch> watch,
                            std::shared_ptr<Waiting> waiting) {
    http::Exchange& exchange = call.exchange;
    auto next_ping = steady_clock::now() + kPingEvery;
    bool ready = true;
    bool settle = false;
    Status sent;
    while (sent && !waiting->reader_gone()) {
        if (call.services.stopping) {
            sent = co_await exchange.write(FileWatch::end_event(watch->path(), "stopping"));
            break;
        }
        bool unsettled = false;
        if (ready || settle) {
            std::function<Result<FileWatch::Batch>()> work = [watch, settle] {
                return Result<FileWatch::Batch>(watch->read(settle));
            };
            auto batch = co_await call.services.files.run(call.identity, std::move(work));
            if (!batch) break;
            if (!batch->events.empty()) sent = co_await exchange.write(batch->events);
            if (!sent || batch->ended) break;
            ready = batch->more;
            settle = false;
            unsettled = batch->unsettled;
            if (ready) continue;
        }
        if (steady_clock::now() >= next_ping) {
            if (watch->lost()) {
                sent = co_await exchange.write(FileWatch::end_event(watch->path(), "removed"));
                break;
            }
            sent = co_await exchange.write(ping_event());
            next_ping = steady_clock::now() + kPingEvery;
        }
        if (!sent) break;
        ready = co_await waiting->wait_for(unsettled ? kSettleAfter : kLookEvery);
        settle = unsettled;
    }
    if (sent && !waiting->reader_gone()) sent = co_await exchange.finish();
}

}  // namespace

Awaitable<void> watch_files(FileCall call) {
    Result<std::string> path = call.path_parameter();
    Result<bool> recursive = recursive_parameter(call.exchange);
    if (!path || !recursive) {
        co_await reply_error(call.exchange, path ? recursive.error() : path.error());
        co_return;
    }
    if (call.services.file_watches >= kMaxWatches) {
        co_await reply_error(call.exchange,
                             Error(ErrorCode::resource_exhausted,
                                   "there are " + std::to_string(kMaxWatches) +
                                       " watches already; end one that is not needed any more"));
        co_return;
    }
    ++call.services.file_watches;
    ScopeExit counted([&] { --call.services.file_watches; });
    std::function<Result<std::shared_ptr<FileWatch>>()> work =
        [path = *path, recursive = *recursive]() -> Result<std::shared_ptr<FileWatch>> {
        auto opened = FileWatch::open(path, recursive);
        if (!opened) return opened.error();
        return std::shared_ptr<FileWatch>(std::move(*opened));
    };
    auto watch = co_await call.services.files.run(call.identity, std::move(work));
    if (!watch) {
        co_await reply_error(call.exchange, watch.error());
        co_return;
    }
    UniqueFd descriptor(::fcntl((*watch)->descriptor(), F_DUPFD_CLOEXEC, 0));
    if (!descriptor) {
        co_await reply_error(call.exchange, Error::from_errno(errno, "watch " + *path));
        co_return;
    }
    Status sent = co_await call.exchange.start(http::event_stream_head());
    if (sent) sent = co_await call.exchange.write(watching_event(*path, *recursive));
    if (!sent) co_return;
    auto waiting = std::make_shared<Waiting>(call.services.executor, std::move(descriptor));
    net::spawn(call.services.executor, Waiting::watch_reader(waiting, call.exchange.client_gone()),
               "watch client");
    co_await send_events(call, *watch, waiting);
    waiting->close();
    // The kernel takes its time to let go of thousands of watches.
    std::function<Status()> let_go = [last = std::move(*watch)]() mutable {
        last.reset();
        return Status();
    };
    (void)co_await call.services.files.run<void>(std::nullopt, std::move(let_go));
}

}  // namespace opensandbox::agent
