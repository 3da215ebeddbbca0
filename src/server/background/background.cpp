#include "server/background/background.hpp"

namespace opensandbox::server {

Result<std::unique_ptr<Background>> Background::start(asio::any_io_executor executor,
                                                      Services& services) {
    const Config& config = services.config;
    std::unique_ptr<Background> background(new Background());
    if (config.tenants.enabled) {
        auto tenants = make_tenants(executor, config);
        if (!tenants) return tenants.error();
        services.tenants = tenants.value();
        background->tenants_ = std::move(tenants.value());
    }
    if (config.renew.enabled) {
        services.renewer = std::make_shared<AccessRenewer>(
            executor, services.lifecycle_owner,
            std::chrono::seconds(config.renew.min_interval_seconds));
        if (config.renew.redis_enabled) {
            auto address = redis::parse_url(config.renew.redis_dsn);
            if (!address) return address.error().within("renew_intent.redis.dsn");
            background->intents_ = std::make_shared<IntentQueue>(
                executor, services.renewer, std::move(address.value()), config.renew);
            background->intents_->start();
        }
    }
    if (config.otel.enabled) {
        auto settings = read_export_settings(config.otel);
        if (!settings) return settings.error();
        background->exporter_ = std::make_shared<MetricsExporter>(
            executor, std::move(settings.value()), services.metrics);
        background->exporter_->start();
    }
    return background;
}

void Background::stop() {
    if (tenants_) tenants_->stop();
    if (intents_) intents_->stop();
    if (exporter_) exporter_->stop();
}

}  // namespace opensandbox::server
