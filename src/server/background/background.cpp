#include "server/background/background.hpp"

#include "base/log.hpp"

#include <cstdlib>

namespace opensandbox::server {
namespace {

std::optional<std::string> environment_variable(std::string_view name) {
    const char* value = std::getenv(std::string(name).c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

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
        auto settings = read_export_settings(config.otel, environment_variable);
        if (!settings) return settings.error();
        if (std::optional<ExportSettings>& wanted = *settings) {
            telemetry::log_ignored(*wanted);
            background->exporter_ =
                std::make_shared<MetricsExporter>(executor, std::move(*wanted), services.metrics);
            background->exporter_->start();
        } else {
            log::info("metrics are not exported: the environment turns them off");
        }
    }
    return background;
}

void Background::stop() {
    if (tenants_) tenants_->stop();
    if (intents_) intents_->stop();
    if (exporter_) exporter_->stop();
}

}  // namespace opensandbox::server
