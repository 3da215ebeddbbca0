#include "agent/metrics/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "agent/json_text.hpp"
#include "base/clock.hpp"
#include "net/task.hpp"

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kSampleEvery{1};
constexpr std::chrono::minutes kInterest{1};
/// Shorter spans say little about the share of CPU time.
constexpr std::chrono::milliseconds kLeastSpan{200};

void append_number(std::string& out, double number) {
    char text[32];
    int size = std::snprintf(text, sizeof text, "%.10g", std::isfinite(number) ? number : 0.0);
    out.append(text, static_cast<std::size_t>(size));
}

}  // namespace

struct Sampler::State {
    struct Sample {
        steady_clock::time_point at;
        std::chrono::microseconds cpu_time{0};
    };

    State(asio::any_io_executor loop, const Environment& variables)
        : executor(std::move(loop)), environment(variables) {}

    /// Percent of `cpu_count` processors between the baseline and now.
    double share(const Sample& now, double cpu_count) const {
        std::chrono::duration<double> span = now.at - baseline.at;
        std::chrono::duration<double> used = now.cpu_time - baseline.cpu_time;
        if (span.count() <= 0 || cpu_count <= 0) return 0;
        return std::clamp(100 * used.count() / (span.count() * cpu_count), 0.0, 100.0);
    }

    asio::any_io_executor executor;
    const Environment& environment;
    Sample baseline{steady_clock::now(), {}};
    double last_share = 0;
    steady_clock::time_point last_asked{};
    bool sampling = false;
    bool closed = false;
};

Sampler::Sampler(asio::any_io_executor executor, const Environment& environment)
    : state_(std::make_shared<State>(std::move(executor), environment)) {}

Sampler::~Sampler() { state_->closed = true; }

std::string Sampler::read() {
    Usage usage = read_usage(state_->environment);
    State::Sample sample{steady_clock::now(), usage.cpu_time};
    if (sample.at - state_->baseline.at >= kLeastSpan) {
        state_->last_share = state_->share(sample, usage.cpu_count);
        state_->baseline = sample;
    }
    state_->last_asked = sample.at;
    if (!state_->sampling) {
        state_->sampling = true;
        net::spawn(state_->executor, keep_sampling(state_), "metrics sampler");
    }
    constexpr double kMiB = 1 << 20;
    std::string out = "{\"cpu_count\":";
    append_number(out, usage.cpu_count);
    out += ",\"cpu_used_pct\":";
    append_number(out, state_->last_share);
    out += ",\"mem_total_mib\":";
    append_number(out, static_cast<double>(usage.memory_total) / kMiB);
    out += ",\"mem_used_mib\":";
    append_number(out, static_cast<double>(usage.memory_used) / kMiB);
    out += ",\"timestamp\":";
    append_integer(out, to_millis(now()));
    out += '}';
    return out;
}

Awaitable<void> Sampler::keep_sampling(std::shared_ptr<State> state) {
    while (true) {
        co_await net::sleep_for(kSampleEvery);
        if (state->closed) co_return;
        if (steady_clock::now() - state->last_asked > kInterest) break;
        Usage usage = read_usage(state->environment);
        State::Sample sample{steady_clock::now(), usage.cpu_time};
        state->last_share = state->share(sample, usage.cpu_count);
        state->baseline = sample;
    }
    state->sampling = false;
}

}  // namespace opensandbox::agent
