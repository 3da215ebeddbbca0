#pragma once

#include "server/api/services.hpp"
#include "server/background/metrics_exporter.hpp"
#include "server/renew/intent_queue.hpp"

#include <memory>

namespace opensandbox::server {

/// What works beside the requests, as configured: tenants, renewal on access, export of metrics.
class Background {
  public:
    /// Completes the services and starts the work; they must outlive it. The error names the
    /// setting that cannot be.
    static Result<std::unique_ptr<Background>> start(asio::any_io_executor executor,
                                                     Services& services);
    ~Background() { stop(); }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    void stop();

  private:
    Background() = default;
    std::shared_ptr<Tenants> tenants_;
    std::shared_ptr<IntentQueue> intents_;
    std::shared_ptr<MetricsExporter> exporter_;
};

}  // namespace opensandbox::server
