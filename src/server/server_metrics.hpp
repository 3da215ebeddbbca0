#pragma once

#include "telemetry/exposition.hpp"
#include "telemetry/histogram.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace opensandbox::server {

/// What the server measures about its own work. One event loop.
class ServerMetrics {
  public:
    /// `route` is the template that matched, empty for none; methods beyond the usual are OTHER.
    void record_request(std::string_view method, std::string_view route, int status,
                        std::chrono::nanoseconds took);
    void record_create(bool success, std::chrono::nanoseconds took);
    /// As clients report it; the language and version come from their User-Agent.
    void record_client_create(std::string_view user_agent, bool success, std::int64_t milliseconds);

    std::uint64_t requests_in_flight = 0;

    void write(telemetry::Exposition& out) const;

  private:
    using RequestKey = std::tuple<std::string, std::string, int>;
    using ClientKey = std::tuple<std::string, std::string, bool>;
    std::map<RequestKey, telemetry::Histogram> requests_;
    std::map<bool, telemetry::Histogram> creates_;
    std::map<ClientKey, telemetry::Histogram> client_creates_;
};

}  // namespace opensandbox::server
