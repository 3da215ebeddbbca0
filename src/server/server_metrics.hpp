#pragma once

#include "telemetry/exposition.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/otlp_metrics.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
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
    /// The two histograms of lifecycle 9, in milliseconds.
    void write(telemetry::OtlpMetrics& out) const;

  private:
    /// The same observations with the bounds of /metrics and with the contract's.
    struct Series {
        Series(std::span<const double> second_bounds, std::span<const double> milli_bounds)
            : seconds(second_bounds), millis(milli_bounds) {}
        void observe(double second_count);
        telemetry::Histogram seconds;
        telemetry::Histogram millis;
    };
    /// Looked up by views, so that counting a request allocates nothing.
    struct RequestKey {
        std::string_view method;  ///< of a constant
        std::string route;
        int status;
    };
    struct RequestView {
        std::string_view method;
        std::string_view route;
        int status;
    };
    struct RequestOrder {
        using is_transparent = void;
        template <class A, class B>
        bool operator()(const A& a, const B& b) const {
            return view(a) < view(b);
        }
        template <class Key>
        static std::tuple<int, std::string_view, std::string_view> view(const Key& key) {
            return {key.status, key.route, key.method};
        }
    };
    using ClientKey = std::tuple<std::string, std::string, bool>;
    std::map<RequestKey, Series, RequestOrder> requests_;
    std::map<bool, telemetry::Histogram> creates_;
    std::map<ClientKey, Series> client_creates_;
};

}  // namespace opensandbox::server
