#include "egress/role/metrics_export.hpp"

#include "base/log.hpp"
#include "net/task.hpp"

namespace opensandbox::egress {

MetricsExport::MetricsExport(asio::any_io_executor executor, telemetry::OtlpSettings settings,
                             Timestamp started, ConnectOrigin connect, Collect collect)
    : executor_(std::move(executor)),
      settings_(std::move(settings)),
      connect_(std::move(connect)),
      collect_(std::move(collect)),
      ledger_(settings_.temporality, started) {}

Awaitable<void> MetricsExport::run() {
    while (true) {
        co_await net::sleep_for(settings_.interval);
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) co_return;
        co_await send(settings_.timeout);
    }
}

Awaitable<void> MetricsExport::send(std::chrono::milliseconds limit) {
    Post post;
    post.origin = settings_.endpoint.origin;
    post.target = settings_.endpoint.path;
    post.fields = settings_.headers;
    post.fields.set("Content-Type", "application/x-protobuf");
    post.body = collect_(ledger_);
    post.timeout = limit;
    const Result<int> status = co_await send_post(executor_, connect_, post);
    const bool sent = status && *status >= 200 && *status < 300;
    if (sent) ledger_.taken();
    if (!sent && !failing_) {
        const std::string why =
            status ? "the collector answered " + std::to_string(*status) : status.error().message();
        log::warn("metrics could not be exported", {{"error", why}});
    }
    failing_ = !sent;
}

}  // namespace opensandbox::egress
