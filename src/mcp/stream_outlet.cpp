#include "http/event_stream.hpp"
#include "mcp/http_transport.hpp"

namespace opensandbox::mcp {

namespace {

/// How long an answer may take before it becomes a stream.
constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::seconds kStreamKeepAlive{15};
constexpr int kAccepted = 202;

}  // namespace

std::string event_of(std::string_view message) {
    return "event: message\ndata: " + std::string(message) + "\n\n";
}

void StreamOutlet::notify(std::string message) {
    if (closed_) return;
    notified_ = true;
    messages_.push_back(std::move(message));
    arrived_.notify();
}

void StreamOutlet::reply(std::string message) {
    if (!closed_) messages_.push_back(std::move(message));
    abandon();
}

void StreamOutlet::abandon() {
    if (expected_ > 0) --expected_;
    arrived_.notify();
}

Awaitable<void> StreamOutlet::deliver(http::Exchange& exchange) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (expected_ > 0 && !notified_) {
        const auto left = end - std::chrono::steady_clock::now();
        if (left.count() <= 0 || !co_await arrived_.wait_for(left)) break;
    }
    if (expected_ == 0 && messages_.size() == 1 && !notified_) {
        co_await exchange.respond(http::json_response(200, std::move(messages_.front())));
    } else if (expected_ == 0 && messages_.empty()) {
        co_await exchange.respond(http::Response(kAccepted));
    } else {
        co_await deliver_events(exchange);
    }
    closed_ = true;
    messages_.clear();
}

Awaitable<void> StreamOutlet::deliver_events(http::Exchange& exchange) {
    auto started = co_await exchange.start(http::event_stream_head());
    if (!started) co_return;
    for (;;) {
        while (!messages_.empty()) {
            const std::string event = event_of(messages_.front());
            messages_.pop_front();
            auto written = co_await exchange.write(event);
            if (!written) co_return;
        }
        if (expected_ == 0) break;
        const bool woken = co_await arrived_.wait_for(kStreamKeepAlive);
        if (woken) continue;
        auto written = co_await exchange.write(": still at work\n\n");
        if (!written) co_return;
    }
    co_await exchange.finish();
}

}  // namespace opensandbox::mcp
