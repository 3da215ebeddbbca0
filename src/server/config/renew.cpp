#include "server/config/sections.hpp"

namespace opensandbox::server {

void read_renew_intent(ConfigReader& reader, Config& config) {
    RenewConfig& renew = config.renew;
    renew.enabled = reader.flag("renew_intent.enabled", false);
    reader.number("renew_intent.min_interval_seconds", 0, 86400, renew.min_interval_seconds);
    renew.redis_enabled = reader.flag("renew_intent.redis.enabled", false);
    reader.text("renew_intent.redis.dsn", renew.redis_dsn);
    if (renew.redis_enabled && renew.redis_dsn.empty())
        reader.fail("renew_intent.redis.dsn", "must be set where renew_intent.redis is enabled");
    reader.text("renew_intent.redis.queue_key", renew.redis_queue_key);
    if (renew.redis_queue_key.empty())
        reader.fail("renew_intent.redis.queue_key", "must not be empty");
    reader.number("renew_intent.redis.consumer_concurrency", 1, 256,
                  renew.redis_consumer_concurrency);
}

void read_otel(ConfigReader& reader, Config& config) {
    OtelConfig& otel = config.otel;
    otel.enabled = reader.flag("otel.enabled", false);
    reader.text("otel.endpoint", otel.endpoint);
    reader.text("otel.service_name", otel.service_name);
    otel.export_interval_millis = 0;
    reader.number("otel.export_interval_millis", 100, 86'400'000, otel.export_interval_millis);
}

}  // namespace opensandbox::server
