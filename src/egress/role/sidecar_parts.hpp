#pragma once

#include "base/clock.hpp"
#include "egress/audit/log_budget.hpp"
#include "egress/dns/proxy.hpp"
#include "egress/guard/sandbox_guard.hpp"
#include "egress/intercept/interceptor.hpp"
#include "egress/role/host_figures.hpp"
#include "egress/role/metrics_export.hpp"
#include "egress/role/own_connector.hpp"
#include "egress/role/sidecar.hpp"
#include "http/server.hpp"

#include <boost/asio/thread_pool.hpp>

namespace opensandbox::egress {

/// What a sidecar is made of, and how it is put together.
struct Sidecar::Parts {
    Parts(asio::any_io_executor e, SidecarSettings s);
    ~Parts();
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    Status load();
    [[nodiscard]] dns::UpstreamSettings upstream_settings() const;
    Status start_names();
    Status start_webhook();
    Status start_filter();
    Status start_interception();
    Status start_api();
    [[nodiscard]] Result<std::unique_ptr<net::Listener>> api_listener() const;
    void start_jobs();
    /// Beside the authority's key, where nobody else writes.
    [[nodiscard]] std::filesystem::path vault_mark() const {
        return settings.authority.key.parent_path() / "vault-held";
    }
    [[nodiscard]] FilteredSandbox filtered() const;
    void tell_resolved(const std::string& name, const std::string& addresses) const;
    void tell_unresolved(const std::string& name);
    [[nodiscard]] ConnectOrigin own_connections() const;
    /// Text for Prometheus.
    [[nodiscard]] std::string metrics();
    /// The body of an export to an OTLP collector.
    [[nodiscard]] std::string otlp_metrics(telemetry::ExportLedger& ledger);

    asio::any_io_executor executor;
    SidecarSettings settings;
    asio::thread_pool files{2};
    LogSkip log_skip;
    LogBudget failures{10, 100};  ///< lines about names that could not be resolved
    GuardPtr guard;
    std::shared_ptr<PacketFilter> filter;
    std::unique_ptr<dns::Proxy> names;
    std::unique_ptr<net::PacketLog> packets;
    std::unique_ptr<Interceptor> interceptor;
    std::unique_ptr<http::Server> server;
    std::unique_ptr<MetricsExport> exporter;
    Timestamp started = now();
    HostFigures last_figures = read_host_figures();
    std::vector<std::shared_ptr<asio::cancellation_signal>> jobs;
    std::uint16_t port = 0;
    bool verifying = false;  ///< verify_redirection() runs
};

/// Gives a socket the mark by which the packet filter knows the sidecar's own (network 1.4).
Status mark_own(int fd);

}  // namespace opensandbox::egress
