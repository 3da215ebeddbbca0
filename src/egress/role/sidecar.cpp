#include "egress/role/sidecar.hpp"

#include "base/json_string.hpp"
#include "base/log.hpp"
#include "egress/dns/default_upstreams.hpp"
#include "egress/guard/guards.hpp"
#include "egress/guard/policy_log.hpp"
#include "egress/role/sidecar_parts.hpp"
#include "egress/rules/redirection_check.hpp"
#include "egress/settings/values.hpp"
#include "egress/vault/vault_mark.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <fcntl.h>

namespace opensandbox::egress {

namespace {

/// For the last metrics to be taken.
constexpr std::chrono::seconds kLastExport{1};
/// Longer than a resolver may take that does not answer: any answer of ours will do.
constexpr std::chrono::seconds kRedirectionPatience{2};
constexpr std::string_view kProbe = "redirection.opensandbox.invalid";
/// It is the only sandbox.
constexpr std::size_t kMostNames = 50'000;

/// The items of a comma list.
std::string list_json(std::string_view text) {
    std::string json = "[";
    for (const std::string& item : split_list(text)) {
        if (json.size() > 1) json += ',';
        append_json_string(json, item);
    }
    return json + "]";
}

}  // namespace

Status mark_own(int fd) {
    const std::uint32_t mark = rules::OwnTraffic().mark;
    if (::setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) != 0) {
        return Error::from_errno(errno, "mark a socket");
    }
    return {};
}

Sidecar::Parts::Parts(asio::any_io_executor e, SidecarSettings s)
    : executor(std::move(e)), settings(std::move(s)) {}

Sidecar::Parts::~Parts() {
    for (const auto& job : jobs)
        job->emit(asio::cancellation_type::terminal);
    files.join();
}

Status Sidecar::Parts::load() {
    const SidecarOptions& options = settings.options;
    PolicyStoreSettings store;
    store.overlay_directory = settings.overlay_directory;
    store.file = options.policy_file;
    store.rules = options.rules;
    store.max_rules = options.max_rules;
    store.filtering = options.nft;
    Result<LoadedPolicy> loaded = load_policy(std::move(store));
    if (!loaded) return loaded.error();
    Result<LogSkip> skip = read_log_skip(settings.overlay_directory);
    if (!skip) return skip.error();
    log_skip = std::move(*skip);
    log_policy_loaded(loaded->initial, options.sandbox_id);
    Result<PassThroughList> passed = pass_through_list(options.pass_through);
    if (!passed) return passed.error();
    GuardedIdentity identity;
    identity.id = options.sandbox_id;
    identity.token = options.token;
    guard = std::make_shared<SandboxGuard>(executor, files, std::move(identity), options,
                                           std::move(*loaded), filtered(), std::move(*passed));
    if (options.credential_bound && is_vault_marked(vault_mark())) {
        guard->vault.lose();
        log::warn("the credential vault is lost: TLS by name is refused until it is written again");
    }
    return {};
}

FilteredSandbox Sidecar::Parts::filtered() const {
    const SidecarOptions& options = settings.options;
    PacketPolicySettings packet;
    packet.filtering = options.nft;
    packet.block_doh = options.block_doh;
    packet.doh_servers = options.doh_blocklist;
    if (options.intercept) packet.intercepted_ports = options.intercept_ports;
    return {rules::GuardedSandbox("", {}), std::move(packet), kMostNames};
}

Status Sidecar::Parts::start_filter() {
    const SidecarOptions& options = settings.options;
    rules::SidecarOptions table_options;
    table_options.dns_port = settings.dns_port;
    table_options.interceptor_port = options.intercept_port;
    table_options.exempt_nameservers = options.nameserver_exempt;
    table_options.log = rules::LogLimits(settings.log_group);
    if (const auto group = rules::own_control_group()) table_options.own.group = *group;
    Result<std::vector<std::string>> links = rules::outer_links();
    if (!links) return links.error();
    table_options.links = std::move(*links);
    auto table = rules::SidecarTable::open(
        std::move(table_options),
        packet_rules(*guard->policies.current(), guard->filtered.settings));
    if (!table) return table.error();
    if (!table->stops_raw_frames()) {
        log::warn("this kernel does not stop raw frames: the sandbox must not have CAP_NET_RAW");
    }
    filter = std::make_shared<PacketFilter>(executor, files, packet_table(std::move(*table)),
                                            [this](ClientId) { return &guard->filtered; });
    filter->on_resolved = [this](ClientId, const std::string& name, const std::string& addresses) {
        tell_resolved(name, addresses);
    };
    SandboxGuard::Surroundings surroundings;
    surroundings.filter = filter.get();
    surroundings.interceptor = [this] { return interceptor.get(); };
    surroundings.metrics = [this] { return metrics(); };
    surroundings.vault_mark = vault_mark();
    guard->join(std::move(surroundings));
    // What an earlier sidecar learned for names that are no longer allowed goes.
    return guard->enforce();
}

void Sidecar::Parts::tell_resolved(const std::string& name, const std::string& addresses) const {
    if (log_skip.skips(name)) return;
    log::info("name resolved", {{"opensandbox.event", "egress.outbound"},
                                {"target.host", name},
                                log::Value::json("target.ips", list_json(addresses))});
}

void Sidecar::Parts::tell_unresolved(const std::string& name) {
    const auto omitted = failures.admit(std::chrono::steady_clock::now());
    if (!omitted) return;
    log::warn("name not resolved", {{"opensandbox.event", "egress.outbound"},
                                    {"target.host", name},
                                    {"error", "no upstream resolver answers"},
                                    {"omitted", *omitted}});
}

ConnectOrigin Sidecar::Parts::own_connections() const {
    DialSettings dial;
    dial.prepare_socket = [](int fd, ClientId) { return mark_own(fd); };
    auto connector = std::make_shared<OwnConnector>(executor, upstream_settings(), std::move(dial));
    return [connector](http::Origin origin) {
        return OwnConnector::connect(connector, std::move(origin));
    };
}

Status Sidecar::Parts::start_webhook() {
    if (settings.options.deny_webhook.empty()) return {};
    return guard->set_webhook(own_connections());
}

dns::UpstreamSettings Sidecar::Parts::upstream_settings() const {
    const SidecarOptions& options = settings.options;
    std::vector<boost::asio::ip::udp::endpoint> upstreams;
    for (const DnsUpstream& upstream : options.dns_upstreams)
        upstreams.emplace_back(upstream.address, upstream.port);
    if (upstreams.empty()) upstreams = dns::default_upstreams_of(settings.resolv_conf);
    dns::UpstreamSettings made = settings.dns.upstream;
    for (const auto& upstream : upstreams) {
        const auto& exempt = options.nameserver_exempt;
        const bool unmarked = std::ranges::find(exempt, upstream.address()) != exempt.end();
        made.servers.emplace_back(upstream,
                                  unmarked ? dns::SocketHook() : dns::SocketHook(mark_own));
    }
    made.timeout = options.dns_timeout;
    made.probe = options.dns_probe;
    made.probe_interval = options.dns_probe_interval;
    return made;
}

Status Sidecar::Parts::start_names() {
    dns::ProxySettings proxy = settings.dns;
    proxy.upstream = upstream_settings();
    dns::Neighbours neighbours;
    neighbours.gate = std::shared_ptr<dns::Gate>(guard, &guard->names);
    neighbours.sink = filter;
    neighbours.observer = [this](const dns::Denial& denial) {
        // Our own question whether queries come here.
        if (verifying && denial.name == kProbe) return;
        guard->auditor.on_name(denial);
    };
    neighbours.unresolved = [this](const std::string& name) { tell_unresolved(name); };
    auto made = dns::Proxy::create(executor, std::move(proxy), std::move(neighbours));
    if (!made) return made.error();
    names = std::move(*made);
    const auto v4 = boost::asio::ip::make_address("127.0.0.1");
    if (auto port = names->listen(v4, settings.dns_port, dns::always(0)); !port) {
        return port.error();
    }
    const auto v6 = boost::asio::ip::make_address("::1");
    if (auto port = names->listen(v6, settings.dns_port, dns::always(0)); !port) {
        log::info("no DNS over IPv6", {{"reason", port.error().message()}});
    }
    return {};
}

Result<std::unique_ptr<net::Listener>> Sidecar::Parts::api_listener() const {
    if (settings.api_socket >= 0) {
        UniqueFd own(::fcntl(settings.api_socket, F_DUPFD_CLOEXEC, 0));
        if (!own) return Error::from_errno(errno, "take over the API's socket");
        return net::adopt_listener(executor, std::move(own));
    }
    const ListenAddress& http = settings.options.http;
    const std::string host = http.address ? http.address->to_string() : "::";
    auto listener = net::listen_tcp(executor, host, http.port);
    if (!listener && !http.address) return net::listen_tcp(executor, "0.0.0.0", http.port);
    return listener;
}

Status Sidecar::Parts::start_api() {
    auto listener = api_listener();
    if (!listener) return listener.error();
    port = (*listener)->port();
    http::Handler handler = [guard = guard](http::Exchange& exchange) {
        return guard->answer(exchange);
    };
    server = std::make_unique<http::Server>(executor, std::move(handler));
    server->serve(std::move(*listener));
    return {};
}

void Sidecar::Parts::start_jobs() {
    jobs.push_back(net::spawn_cancellable(
        executor, watch_overlay(guard->policies, settings.overlay_interval), "overlay"));
    jobs.push_back(net::spawn_cancellable(
        executor, tend(*filter, [this] { return std::vector{guard}; }), "egress tick"));
    if (settings.otlp) {
        exporter = std::make_unique<MetricsExport>(
            executor, *settings.otlp, started, own_connections(),
            [this](telemetry::ExportLedger& ledger) { return otlp_metrics(ledger); });
        jobs.push_back(net::spawn_cancellable(executor, exporter->run(), "metrics export"));
    }
    packets = follow_packets(executor, settings.log_group, [this](const net::LoggedPacket& packet) {
        guard->auditor.on_packet(packet);
    });
}

Sidecar::Sidecar(asio::any_io_executor executor, SidecarSettings settings)
    : parts_(std::make_unique<Parts>(std::move(executor), std::move(settings))) {}

Sidecar::~Sidecar() = default;

Awaitable<Status> Sidecar::start() {
    Parts& parts = *parts_;
    Status done = parts.load();
    if (done) done = parts.start_webhook();
    // The filter before the proxy that opens addresses in it; until that listens, queries are
    // refused.
    if (done) done = parts.start_filter();
    if (done) done = parts.start_names();
    if (!done) co_return done;
    parts.verifying = true;
    done = co_await rules::verify_redirection(parts.settings.options.dns_timeout +
                                              kRedirectionPatience);
    parts.verifying = false;
    if (done) done = parts.start_interception();
    if (done) parts.start_jobs();
    if (done) done = parts.start_api();
    co_return done;
}

Awaitable<void> Sidecar::stop(std::chrono::milliseconds grace) {
    Parts& parts = *parts_;
    if (parts.server) co_await parts.server->drain(grace);
    for (const auto& job : parts.jobs)
        job->emit(asio::cancellation_type::terminal);
    if (parts.exporter) co_await parts.exporter->send(kLastExport);
    if (parts.packets) parts.packets->close();
    if (parts.names) parts.names->stop();
    if (parts.interceptor) parts.interceptor->close();
}

std::uint16_t Sidecar::port() const {
    return parts_->port;
}

}  // namespace opensandbox::egress
