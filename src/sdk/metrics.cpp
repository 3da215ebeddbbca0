#include "opensandbox/metrics.hpp"

#include "opensandbox/sandbox.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

#include <array>

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kMaxLine = 64 * 1024;
constexpr std::size_t kMetricsPiece = 4096;

}  // namespace

/// The watch stream has one object a line and nothing else (execd contract section 7).
struct MetricsStream::State {
    explicit State(std::unique_ptr<http::ClientResponse> r) : response(std::move(r)) {}
    std::unique_ptr<http::ClientResponse> response;
    std::string pending;
    bool ended = false;
};

MetricsStream::MetricsStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsStream::MetricsStream(MetricsStream&&) noexcept = default;
MetricsStream& MetricsStream::operator=(MetricsStream&&) noexcept = default;
MetricsStream::~MetricsStream() = default;

void MetricsStream::abort() {
    state_->response->abort();
}

Awaitable<Result<std::optional<Metrics>>> MetricsStream::next() {
    State& state = *state_;
    for (;;) {
        auto end = state.pending.find('\n');
        if (end != std::string::npos) {
            std::string line = state.pending.substr(0, end);
            state.pending.erase(0, end + 1);
            if (line.starts_with("data:")) line.erase(0, 5);
            if (line.find_first_not_of(" \r") == std::string::npos) continue;
            auto metrics = wire::decode_metrics(line);
            if (!metrics) co_return metrics.error();
            co_return std::optional<Metrics>(*metrics);
        }
        if (state.ended) co_return std::optional<Metrics>();
        if (state.pending.size() > kMaxLine) {
            co_return Error(ErrorCode::too_large,
                            "a sample has more than " + std::to_string(kMaxLine) + " bytes");
        }
        const std::size_t before = state.pending.size();
        state.pending.resize(before + kMetricsPiece);
        std::span<char> into(state.pending.data() + before, kMetricsPiece);
        auto count = co_await state.response->body().read_some(into);
        state.pending.resize(before + (count ? *count : 0));
        if (!count) co_return to_public(count.error());
        if (*count == 0) {
            state.ended = true;
            if (!state.pending.empty()) state.pending += '\n';
        }
    }
}

Awaitable<Result<Metrics>> Sandbox::metrics() const {
    Call call("GET", "/metrics");
    auto reply = co_await connection_.transport()->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_metrics(reply->body);
}

Awaitable<Result<MetricsStream>> Sandbox::watch_metrics() const {
    Call call("GET", "/metrics/watch");
    auto response = co_await connection_.transport()->open(agent_, std::move(call));
    if (!response) co_return response.error();
    co_return MetricsStream(std::make_unique<MetricsStream::State>(std::move(*response)));
}

}  // namespace opensandbox::sdk
