#pragma once

#include "agent/metrics/usage.hpp"
#include "telemetry/otlp_metrics.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace opensandbox::agent {

/// Bytes that passed the network interfaces but the loopback.
struct Traffic {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
};
/// Of the text of /proc/net/dev. Pure.
Traffic read_traffic(std::string_view text);

/// Sockets in the text of /proc/net/tcp or udp; with `established` only those connected. Pure.
std::int64_t count_sockets(std::string_view text, bool established);

/// The figures of the whole sandbox at one moment.
struct SystemSample {
    std::int64_t processes = 0;
    Usage usage;
    std::chrono::steady_clock::time_point at{};
    Traffic traffic;
    std::int64_t tcp_connections = 0;
    std::int64_t udp_sockets = 0;
};

/// Reads /proc; may take milliseconds.
SystemSample sample_system(const Environment& environment);

/// Writes a sample; the share of CPU time is that since the sample before.
void write_system(telemetry::OtlpMetrics& out, const SystemSample& before,
                  const SystemSample& sample, const telemetry::Attributes& common);

}  // namespace opensandbox::agent
