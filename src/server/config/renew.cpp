#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

constexpr bool is_queue_key(std::string_view text) {
    return !text.empty();
}

constexpr std::array kRenewKeys{
    keys::flag<&Config::renew, &RenewConfig::enabled>("enabled", ""),
    keys::number<&Config::renew, &RenewConfig::min_interval_seconds>(
        "min_interval_seconds", 0, 86'400, "Seconds between two renewals of one sandbox."),
};

constexpr std::array kRenewRedisKeys{
    keys::flag<&Config::renew, &RenewConfig::redis_enabled>("enabled", ""),
    keys::text<&Config::renew, &RenewConfig::redis_dsn>("dsn", "").like(
        "\"redis://127.0.0.1:6379/0\""),
    keys::text<&Config::renew, &RenewConfig::redis_queue_key>("queue_key", "")
        .must(is_queue_key, "must not be empty"),
    keys::number<&Config::renew, &RenewConfig::redis_consumer_concurrency>("consumer_concurrency",
                                                                           1, 256, ""),
};

void check_redis(ConfigReader& reader, Config& config) {
    if (config.renew.redis_enabled && config.renew.redis_dsn.empty())
        reader.fail("renew_intent.redis.dsn", "must be set where renew_intent.redis is enabled");
}

constexpr std::array kOtelKeys{
    keys::flag<&Config::otel, &OtelConfig::enabled>("enabled", ""),
    keys::text<&Config::otel, &OtelConfig::endpoint>(
        "endpoint",
        "The variables of `opensandbox exec --help` count here, too: OTEL_SDK_DISABLED, the "
        "temporality and the like. Whole URL; it goes before OTEL_EXPORTER_OTLP_METRICS_ENDPOINT "
        "and its kin.")
        .like("\"http://127.0.0.1:4318/v1/metrics\""),
    keys::text<&Config::otel, &OtelConfig::service_name>("service_name", ""),
    keys::number<&Config::otel, &OtelConfig::export_interval_millis>(
        "export_interval_millis", 100, 86'400'000, "It goes before OTEL_METRIC_EXPORT_INTERVAL.")
        .like("60000"),
};

}  // namespace

constinit const Section kRenewSection{
    .name = "renew_intent",
    .comment =
        "A sandbox created with extensions.\"access.renew.extend.seconds\" lives at least "
        "that much longer from each request that reaches it through the server.",
    .keys = kRenewKeys};
constinit const Section kRenewRedisSection{.name = "renew_intent.redis",
                                           .comment = "Intents that gateways push to a Redis list.",
                                           .keys = kRenewRedisKeys,
                                           .read = check_redis};
constinit const Section kOtelSection{
    .name = "otel",
    .comment = "Histograms of requests and creates as OTLP over HTTP.",
    .keys = kOtelKeys};

}  // namespace opensandbox::server
