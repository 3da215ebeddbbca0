#include "server/server_metrics.hpp"

#include "http/sdk_agent.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::server {
namespace {

/// Seconds; the contract's buckets (lifecycle 9), with finer ones below for what takes
/// milliseconds.
constexpr std::array kRequestBounds{0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                    0.5,    1.0,   2.5,   5.0,  10.0,  30.0, 60.0};
constexpr std::array kCreateBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                   0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};
/// Milliseconds, exactly the contract's.
constexpr std::array kRequestMillis{1.0,   5.0,    10.0,   25.0,   50.0,    100.0,   250.0,
                                    500.0, 1000.0, 2500.0, 5000.0, 10000.0, 30000.0, 60000.0};
constexpr std::array kCreateMillis{100.0,  250.0,   500.0,   1000.0, 2500.0,
                                   5000.0, 10000.0, 30000.0, 60000.0};
constexpr double kMillisInSecond = 1000;
/// Clients choose their User-Agent, so the number of series it may make is bounded.
constexpr std::size_t kMaxClientSeries = 64;

double seconds(std::chrono::nanoseconds took) {
    return std::chrono::duration<double>(took).count();
}

std::string_view known_method(std::string_view method) {
    for (std::string_view known : {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}) {
        if (method == known) return known;
    }
    return "OTHER";
}

/// Language and version, "unknown" where there is none.
std::pair<std::string, std::string> parse_user_agent(std::string_view text) {
    auto sdk = http::parse_sdk_agent(text);
    if (!sdk) return {"unknown", "unknown"};
    return {sdk->language, sdk->version.empty() ? "unknown" : sdk->version};
}

}  // namespace

void ServerMetrics::record_request(std::string_view method, std::string_view route, int status,
                                   std::chrono::nanoseconds took) {
    RequestView key{known_method(method), route.empty() ? "unknown" : route, status};
    auto at = requests_.find(key);
    if (at == requests_.end()) {
        RequestKey owned{key.method, std::string(key.route), key.status};
        at = requests_.try_emplace(std::move(owned), kRequestBounds, kRequestMillis).first;
    }
    at->second.observe(seconds(took));
}

void ServerMetrics::Series::observe(double second_count) {
    seconds.observe(second_count);
    millis.observe(second_count * kMillisInSecond);
}

void ServerMetrics::record_create(bool success, std::chrono::nanoseconds took) {
    creates_.try_emplace(success, kCreateBounds).first->second.observe(seconds(took));
}

void ServerMetrics::record_client_create(std::string_view user_agent, bool success,
                                         std::int64_t milliseconds) {
    auto [language, version] = parse_user_agent(user_agent);
    ClientKey key(language, version, success);
    if (client_creates_.size() >= kMaxClientSeries && !client_creates_.contains(key)) {
        key = ClientKey("other", "other", success);
    }
    auto at = client_creates_.try_emplace(std::move(key), kCreateBounds, kCreateMillis).first;
    at->second.observe(static_cast<double>(milliseconds) / kMillisInSecond);
}

void ServerMetrics::write(telemetry::Exposition& out) const {
    out.metric("opensandbox_http_requests_in_flight", "gauge", "Requests being served now.");
    out.sample(requests_in_flight);
    out.metric("opensandbox_http_request_duration_seconds", "histogram",
               "Time from the request's head to the end of the answer.");
    for (const auto& [key, series] : requests_) {
        telemetry::Labels labels{{"method", std::string(key.method)},
                                 {"route", key.route},
                                 {"status", std::to_string(key.status)}};
        out.histogram(series.seconds, labels);
    }
    out.metric("opensandbox_sandbox_create_duration_seconds", "histogram",
               "Time that a create request took, validation included.");
    for (const auto& [success, histogram] : creates_) {
        out.histogram(histogram, {{"success", success ? "true" : "false"}});
    }
    out.metric("opensandbox_client_create_duration_seconds", "histogram",
               "Time that clients say their creates took.");
    for (const auto& [key, series] : client_creates_) {
        const auto& [language, version, success] = key;
        telemetry::Labels labels{{"sdk_language", language},
                                 {"sdk_version", version},
                                 {"success", success ? "true" : "false"}};
        out.histogram(series.seconds, labels);
    }
}

void ServerMetrics::write(telemetry::OtlpMetrics& out) const {
    using Kind = telemetry::OtlpMetrics::Kind;
    out.metric(Kind::histogram, "server.http.request.duration", "ms",
               "Time from the request's head to the end of the answer.");
    for (const auto& [key, series] : requests_) {
        telemetry::Attributes attributes{{"http_method", std::string(key.method)},
                                         {"http_route", key.route},
                                         {"http_status_code", std::int64_t{key.status}}};
        out.point(series.millis, attributes);
    }
    out.metric(Kind::histogram, "opensandbox.sandbox.create.duration", "ms",
               "Time that clients say their creates took.");
    for (const auto& [key, series] : client_creates_) {
        const auto& [language, version, success] = key;
        telemetry::Attributes attributes{
            {"sdk.language", language}, {"sdk.version", version}, {"success", success}};
        out.point(series.millis, attributes);
    }
}

}  // namespace opensandbox::server
