#pragma once

#include "egress/dns/proxy.hpp"
#include "egress/guard/guards.hpp"
#include "egress/guard/host_gates.hpp"
#include "egress/intercept/interceptor.hpp"
#include "egress/role/enforcer.hpp"
#include "egress/role/keyed_turns.hpp"
#include "egress/role/own_connector.hpp"
#include "http/server.hpp"

#include <boost/asio/thread_pool.hpp>

namespace opensandbox::egress {

/// What an enforcer is made of, and how it is put together.
struct Enforcer::Parts {
    Parts(asio::any_io_executor e, EnforcerSettings s, EnforcerSockets given);
    ~Parts();
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    Status start();
    Status start_filter();
    void tell_resolved(ClientId client, const std::string& name,
                       const std::string& addresses) const;
    Status start_names();
    Status start_interception();
    Status start_api();
    void start_jobs();
    [[nodiscard]] dns::UpstreamSettings upstream_settings() const;

    Awaitable<Status> guard(GuardedSpec spec);
    Awaitable<Status> take_in(GuardedSpec spec);
    Status put_under_guard(const GuardedSpec& spec, SidecarOptions options, LoadedPolicy loaded);
    /// Where bindings decide what is intercepted, those of another process are missed.
    static void lose_vault(SandboxGuard& guard);
    /// What its webhook is reached by.
    [[nodiscard]] ConnectOrigin webhook_connections(const SandboxGuard& guard) const;
    Awaitable<void> release(std::string id);
    /// The turns of addresses, in which their connections are cut or begin.
    Awaitable<std::vector<KeyedTurns::Turn>> hold(std::vector<net::Address> addresses);
    Awaitable<void> remove_files(std::filesystem::path directory);
    void settle();

    Awaitable<void> answer(http::Exchange& exchange);
    [[nodiscard]] std::string metrics() const;
    [[nodiscard]] std::string metrics_of(const SandboxGuard& guard) const;

    static Awaitable<void> watch_overlays(Parts& parts);

    asio::any_io_executor executor;
    EnforcerSettings settings;
    EnforcerSockets sockets;
    asio::thread_pool files{2};
    asio::thread_pool cuts{1};
    Guards guards;
    KeyedTurns turns;
    /// Links in the table, by the ids of sandboxes that could not be guarded: they stay refused.
    std::map<std::string, std::string> withheld;
    ClientId last_client = 0;
    LogSkip log_skip;
    std::shared_ptr<PacketFilter> filter;
    std::unique_ptr<dns::Proxy> names;
    std::shared_ptr<OwnConnector> connector;            ///< for webhooks of requests
    std::shared_ptr<OwnConnector> operators_connector;  ///< for the operator's
    HostTargetGate target_gate{guards};
    HostHook hook{guards};
    HostAudit audit{guards};
    std::unique_ptr<Interceptor> interceptor;
    std::string authority_pem;
    std::unique_ptr<net::PacketLog> packets;
    std::unique_ptr<http::Server> server;
    std::vector<std::shared_ptr<asio::cancellation_signal>> jobs;
    bool running = false;
};

}  // namespace opensandbox::egress
