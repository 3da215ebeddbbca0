#include "agent/metrics/sampler.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"
#include "net/task.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kSampleEvery{1};
constexpr std::chrono::minutes kInterest{1};
/// Shorter spans say little about the share of CPU time.
constexpr std::chrono::milliseconds kLeastSpan{100};

void append_number(std::string& out, double number) {
    char text[32];
    int size = std::snprintf(text, sizeof text, "%.10g", std::isfinite(number) ? number : 0.0);
    out.append(text, static_cast<std::size_t>(size));
}

}  // namespace

struct Sampler::State {
    State(asio::any_io_executor loop, const Environment& variables)
        : executor(std::move(loop)), environment(variables) {}

    /// Takes a sample; the share is of `cpu_count` processors since the one before.
    Usage sample() {
        Usage usage = read_usage(environment);
        auto time = steady_clock::now();
        std::chrono::duration<double> span = time - at;
        std::chrono::duration<double> used = usage.cpu_time - cpu_time;
        if (sampled && span < kLeastSpan) return usage;
        if (sampled && usage.cpu_count > 0) {
            share = std::clamp(100 * used.count() / (span.count() * usage.cpu_count), 0.0, 100.0);
        }
        sampled = true;
        at = time;
        cpu_time = usage.cpu_time;
        return usage;
    }

    asio::any_io_executor executor;
    const Environment& environment;
    bool sampled = false;  ///< `at` and `cpu_time` are those of a sample
    steady_clock::time_point at{};
    std::chrono::microseconds cpu_time{0};
    double share = 0;  ///< percent
    steady_clock::time_point last_asked{};
    bool sampling = false;
    bool closed = false;
};

Sampler::Sampler(asio::any_io_executor executor, const Environment& environment)
    : state_(std::make_shared<State>(std::move(executor), environment)) {}

Sampler::~Sampler() {
    state_->closed = true;
}

Awaitable<std::string> Sampler::read() {
    std::shared_ptr<State> state = state_;
    state->last_asked = steady_clock::now();
    if (!state->sampling) {
        state->sampling = true;
        state->sampled = false;
        state->sample();
        net::spawn(state->executor, keep_sampling(state), "metrics sampler");
        co_await net::sleep_for(kLeastSpan);
    }
    Usage usage = state->sample();
    constexpr double kMiB = 1 << 20;
    std::string out = "{\"cpu_count\":";
    append_number(out, usage.cpu_count);
    out += ",\"cpu_used_pct\":";
    append_number(out, state->share);
    out += ",\"mem_total_mib\":";
    append_number(out, static_cast<double>(usage.memory_total) / kMiB);
    out += ",\"mem_used_mib\":";
    append_number(out, static_cast<double>(usage.memory_used) / kMiB);
    out += ",\"timestamp\":";
    append_integer(out, to_millis(now()));
    out += '}';
    co_return out;
}

Awaitable<void> Sampler::keep_sampling(std::shared_ptr<State> state) {
    while (true) {
        co_await net::sleep_for(kSampleEvery);
        if (state->closed) co_return;
        if (steady_clock::now() - state->last_asked > kInterest) break;
        state->sample();
    }
    state->sampling = false;
}

}  // namespace opensandbox::agent
