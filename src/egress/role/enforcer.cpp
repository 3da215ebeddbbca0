#include "egress/role/enforcer.hpp"

#include "base/log.hpp"
#include "egress/dns/default_upstreams.hpp"
#include "egress/guard/own_address.hpp"
#include "egress/role/enforcer_parts.hpp"
#include "egress/role/interceptor_settings.hpp"
#include "net/address_block.hpp"

#include <sys/socket.h>

namespace opensandbox::egress {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAuthority = "authority";

/// Where no webhook of a request leads: services of the host itself, and of its cloud.
bool open_to_webhooks(const net::Address& address) {
    if (is_own_address(address)) return false;
    if (address.is_v4()) return (address.to_v4().to_uint() >> 16) != 0xa9fe;
    return !address.to_v6().is_link_local();
}

}  // namespace

EnforcerSettings::EnforcerSettings(rules::HostOptions table) : rules(std::move(table)) {
    dns.upstream.in_flight = 8192;
    dns.clients.all_in_flight = 16'384;
    dns.clients.all_connections = 8192;
    dns.cache.entries = 200'000;
    dns.cache.bytes = 64U << 20;
}

Enforcer::Parts::Parts(asio::any_io_executor e, EnforcerSettings s, EnforcerSockets given)
    : executor(std::move(e)), settings(std::move(s)), sockets(std::move(given)), turns(executor) {}

Enforcer::Parts::~Parts() {
    for (const auto& job : jobs)
        job->emit(asio::cancellation_type::terminal);
    cuts.join();
    files.join();
}

Status Enforcer::Parts::start_filter() {
    auto table = rules::HostTable::open(settings.rules);
    if (!table) return table.error();
    if (!table->is_protected())
        log::warn("this kernel does not protect the egress table from a foreign flush");
    Result<LogSkip> skip = read_log_skip(settings.overlay_directory);
    if (!skip) return skip.error();
    log_skip = std::move(*skip);
    filter = std::make_shared<PacketFilter>(executor, cuts, packet_table(std::move(*table)),
                                            [this](ClientId client) -> FilteredSandbox* {
                                                const GuardPtr guard = guards.of_client(client);
                                                return guard ? &guard->filtered : nullptr;
                                            });
    filter->on_resolved = [this](ClientId client, const std::string& name,
                                 const std::string& addresses) {
        tell_resolved(client, name, addresses);
    };
    return {};
}

void Enforcer::Parts::tell_resolved(ClientId client, const std::string& name,
                                    const std::string& addresses) const {
    const GuardPtr guard = guards.of_client(client);
    if (!guard || log_skip.skips(name)) return;
    log::info("name resolved", {{"opensandbox.event", "egress.outbound"},
                                {"target.host", name},
                                {"target.ips", addresses},
                                {"sandbox_id", guard->identity.id}});
}

dns::UpstreamSettings Enforcer::Parts::upstream_settings() const {
    dns::UpstreamSettings upstream = settings.dns.upstream;
    if (!upstream.servers.empty()) return upstream;
    for (const auto& endpoint : dns::default_upstreams_of(settings.resolv_conf))
        upstream.servers.emplace_back(endpoint);
    return upstream;
}

Status Enforcer::Parts::start_names() {
    dns::ProxySettings proxy = settings.dns;
    proxy.upstream = upstream_settings();
    connector =
        std::make_shared<OwnConnector>(executor, proxy.upstream, DialSettings(), open_to_webhooks);
    operators_connector = std::make_shared<OwnConnector>(executor, proxy.upstream, DialSettings());
    dns::Neighbours neighbours;
    neighbours.gate = std::make_shared<HostNameGate>(guards);
    neighbours.sink = filter;
    neighbours.observer = [this](const dns::Denial& denial) {
        if (const GuardPtr guard = guards.of_client(denial.client)) guard->auditor.on_name(denial);
    };
    auto made = dns::Proxy::create(executor, std::move(proxy), std::move(neighbours));
    if (!made) return made.error();
    names = std::move(*made);
    const dns::Identify identify = [this](const dns::Arrival& arrival) {
        return guards.identify(arrival);
    };
    for (UniqueFd* udp : {&sockets.dns_udp4, &sockets.dns_udp6}) {
        if (!*udp) continue;
        if (Status served = names->serve_udp(std::move(*udp), identify); !served) return served;
    }
    for (UniqueFd* tcp : {&sockets.dns_tcp4, &sockets.dns_tcp6}) {
        if (!*tcp) continue;
        if (Status served = names->serve_tcp(std::move(*tcp), identify); !served) return served;
    }
    return {};
}

Status Enforcer::Parts::start_interception() {
    if (settings.rules.interceptor_port == 0) return {};
    UpstreamOptions upstream;
    upstream.trust_directory = settings.upstream_trust_directory;
    upstream.extra_ca = settings.upstream_extra_ca;
    upstream.proxy = settings.upstream_proxy;
    upstream.proxy_authorization = settings.upstream_proxy_authorization;
    Result<InterceptorSettings> intercept = interceptor_settings(upstream);
    if (!intercept) return intercept.error();
    intercept->upstream.unverified = [this](ClientId client) {
        const GuardPtr guard = guards.of_client(client);
        return guard && guard->options.upstream_insecure;
    };
    const fs::path folder = settings.state_directory / kAuthority;
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) return Error(ErrorCode::io, "make " + folder.string() + ": " + failed.message());
    const AuthorityFiles kept{folder / "ca-cert.pem", folder / "ca-key.pem"};
    Result<CertificateAuthority> authority = CertificateAuthority::load_or_make(kept);
    if (!authority) return authority.error();
    InterceptorParties parties;
    parties.gate = &target_gate;
    parties.hook = &hook;
    parties.audit = &audit;
    parties.client_of = [this](int fd) -> Result<ClientId> {
        if (const auto client = guards.identify(dns::connection_arrival(fd))) return *client;
        return Error(ErrorCode::not_found, "a connection of no sandbox");
    };
    auto made = Interceptor::make(executor, std::move(*intercept), std::move(*authority),
                                  std::move(parties));
    if (!made) return made.error();
    for (UniqueFd* listener : {&sockets.intercept4, &sockets.intercept6}) {
        if (!*listener) continue;
        const int family = listener == &sockets.intercept4 ? AF_INET : AF_INET6;
        // Before a connection comes: it keeps by what link its first packet came.
        if (Status told = dns::report_arrival(listener->get(), family); !told) return told;
        if (Status served = (*made)->serve(std::move(*listener)); !served) return served;
    }
    interceptor = std::move(*made);
    authority_pem = interceptor->authority_pem();
    return {};
}

Status Enforcer::Parts::start_api() {
    if (!sockets.api) return Error(ErrorCode::invalid_argument, "the API has no socket");
    auto listener = net::adopt_listener(executor, std::move(sockets.api));
    if (!listener) return listener.error();
    http::Handler handler = [this](http::Exchange& exchange) { return answer(exchange); };
    server = std::make_unique<http::Server>(executor, std::move(handler));
    server->serve(std::move(*listener));
    return {};
}

Awaitable<void> Enforcer::Parts::watch_overlays(Parts& parts) {
    while (true) {
        co_await net::sleep_for(parts.settings.overlay_interval);
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) co_return;
        for (const GuardPtr& guard : parts.guards.all()) {
            const Status reloaded = co_await guard->policies.reload_overlay();
            if (!parts.running) co_return;
            if (!reloaded && !guard->filtered.released) {
                log::warn("the overlay's rules stay as they were",
                          {{"opensandbox.event", "egress.update_failed"},
                           {"sandbox_id", guard->identity.id},
                           {"error", reloaded.error().message()}});
            }
        }
    }
}

void Enforcer::Parts::start_jobs() {
    jobs.push_back(net::spawn_cancellable(executor, tend(*filter, [this] { return guards.all(); }),
                                          "egress tick"));
    jobs.push_back(net::spawn_cancellable(executor, watch_overlays(*this), "overlays"));
    if (settings.rules.log.group == 0) return;
    auto seen = [this](const net::LoggedPacket& packet) {
        if (const GuardPtr guard = guards.of_link(packet.link)) guard->auditor.on_packet(packet);
    };
    packets = follow_packets(executor, settings.rules.log.group, std::move(seen));
}

Status Enforcer::Parts::start() {
    // The filter before the proxy that opens addresses in it.
    Status done = start_filter();
    if (done) done = start_names();
    if (done) done = start_interception();
    if (done) done = start_api();
    if (!done) return done;
    start_jobs();
    running = true;
    return {};
}

Enforcer::Enforcer(asio::any_io_executor executor, EnforcerSettings settings,
                   EnforcerSockets sockets)
    : parts_(
          std::make_unique<Parts>(std::move(executor), std::move(settings), std::move(sockets))) {}

Enforcer::~Enforcer() = default;

Awaitable<Status> Enforcer::start() {
    co_return parts_->start();
}

Awaitable<Status> Enforcer::guard(GuardedSpec spec) {
    return parts_->guard(std::move(spec));
}

bool Enforcer::guards(const std::string& id) const {
    return parts_->guards.of_id(id) != nullptr;
}

Awaitable<void> Enforcer::release(std::string id) {
    return parts_->release(std::move(id));
}

void Enforcer::settle() {
    parts_->settle();
}

Awaitable<void> Enforcer::stop() {
    Parts& parts = *parts_;
    parts.running = false;
    if (parts.server) co_await parts.server->drain(parts.settings.stop_grace);
    for (const auto& job : parts.jobs)
        job->emit(asio::cancellation_type::terminal);
    if (parts.packets) parts.packets->close();
    if (parts.names) parts.names->stop();
    if (parts.interceptor) parts.interceptor->close();
}

const std::string& Enforcer::authority_pem() const {
    return parts_->authority_pem;
}

std::string Enforcer::metrics() const {
    return parts_->metrics();
}

}  // namespace opensandbox::egress
