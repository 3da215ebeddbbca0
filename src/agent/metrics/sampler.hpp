#pragma once

#include "agent/metrics/usage.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace opensandbox::agent {

/// Answers /metrics. The share of CPU time is that since an earlier sample; samples are taken every
/// second while anyone asked within the last minute, and not at all otherwise. Only the first
/// answer after a pause takes a tenth of a second, to have something to compare with.
class Sampler {
  public:
    Sampler(asio::any_io_executor executor, const Environment& environment);
    ~Sampler();
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    /// The answer as JSON (execd contract 7): all five members, used at most total, 0 to 100 %.
    Awaitable<std::string> read();

  private:
    struct State;
    static Awaitable<void> keep_sampling(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::agent
