#pragma once

#include "telemetry/histogram.hpp"
#include "telemetry/otlp_metrics.hpp"

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Durations of what the agent did, by kind (execd contract 10).
class Measurements {
  public:
    using Duration = std::chrono::steady_clock::duration;

    /// `route` is the router's pattern; empty when none matched. A request to a file route counts
    /// as a file operation too.
    void request(std::string_view method, std::string_view route, int status, Duration took);
    /// `operation` is run_code, run_command or run_in_session.
    void execution(std::string_view operation, bool success, Duration took);

    void write(telemetry::OtlpMetrics& out, const telemetry::Attributes& common) const;

  private:
    struct RequestKind {
        auto operator<=>(const RequestKind&) const = default;
        std::string method;
        std::string route;
        int status;
    };
    struct OperationKind {
        auto operator<=>(const OperationKind&) const = default;
        std::string operation;
        bool success;
    };
    using Operations = std::map<OperationKind, telemetry::Histogram>;
    static void write_operations(telemetry::OtlpMetrics& out, const Operations& operations,
                                 const telemetry::Attributes& common);

    std::map<RequestKind, telemetry::Histogram> requests_;
    Operations executions_;
    Operations file_operations_;
};

/// The name of the file operation that a route does, empty for others. Pure.
std::string_view file_operation(std::string_view method, std::string_view route);

/// A router's pattern as upstream writes it: "/command/status/:id", "/proxy/:port/*rest";
/// "unknown" when empty. Pure.
std::string route_label(std::string_view pattern);

}  // namespace opensandbox::agent
