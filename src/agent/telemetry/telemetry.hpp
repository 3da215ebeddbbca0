#pragma once

#include "agent/files/file_pool.hpp"
#include "agent/process/environment.hpp"
#include "http/client.hpp"
#include "telemetry/otlp_settings.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Where metrics go and what goes with them.
struct TelemetrySettings : telemetry::OtlpSettings {
    explicit TelemetrySettings(telemetry::OtlpSettings shared) : OtlpSettings(std::move(shared)) {}
    std::string sandbox_id;                   ///< may be empty
    telemetry::Attributes common_attributes;  ///< of every point
};

/// Reads the environment as telemetry::read_otlp_settings() does, with OPENSANDBOX_ID and
/// OPENSANDBOX_EXECD_METRICS_EXTRA_ATTRS. Pure.
Result<std::optional<TelemetrySettings>> read_telemetry_settings(const Environment& environment,
                                                                 std::string_view hostinfo);

/// Metrics of this agent, sent to an OTLP collector when the environment names one (execd contract
/// 10). Otherwise every call returns at once and nothing is kept.
class Telemetry {
  public:
    using Clock = std::chrono::steady_clock;

    /// Reads the settings; what makes them useless is warned of once. All are borrowed.
    Telemetry(asio::any_io_executor executor, const Environment& environment, FilePool& files,
              http::Client& client);
    ~Telemetry();
    Telemetry(const Telemetry&) = delete;
    Telemetry& operator=(const Telemetry&) = delete;

    [[nodiscard]] bool enabled() const { return state_ != nullptr; }

    /// A request was answered. `route` is the router's pattern, empty when none matched.
    void request(std::string_view method, std::string_view route, int status, Clock::duration took);
    /// Code or a command ended. `operation` is run_code, run_command or run_in_session.
    void execution(std::string_view operation, bool success, Clock::duration took);

    /// Begins to export every interval.
    void start();
    /// Exports once more, for at most a second.
    Awaitable<void> flush();

  private:
    struct State;
    static Awaitable<void> export_regularly(std::shared_ptr<State> state);
    static Awaitable<void> export_once(std::shared_ptr<State> state,
                                       std::chrono::milliseconds limit);
    std::shared_ptr<State> state_;  ///< null when off
};

}  // namespace opensandbox::agent
