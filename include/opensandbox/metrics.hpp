#pragma once

#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace opensandbox::sdk {

/// What a sandbox uses of what it may use.
struct Metrics {
    double cpu_count = 0;
    double cpu_used_percentage = 0;  ///< 0 to 100, of all its processors
    double memory_total_in_mib = 0;
    double memory_used_in_mib = 0;
    std::int64_t timestamp = 0;  ///< milliseconds since the epoch
};

/// Samples as the sandbox takes them, about one a second.
class MetricsStream {
  public:
    MetricsStream(MetricsStream&&) noexcept;
    MetricsStream& operator=(MetricsStream&&) noexcept;
    ~MetricsStream();

    /// Empty when the sandbox ended the stream.
    boost::asio::awaitable<Result<std::optional<Metrics>>> next();
    /// Closes the connection now; a next() in flight ends with `cancelled`.
    void abort();

  private:
    friend class Sandbox;
    struct State;
    explicit MetricsStream(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace opensandbox::sdk
