#include "controller/role/role.hpp"

#include "base/descriptor_limit.hpp"
#include "base/identifier.hpp"
#include "controller/definition/manifests.hpp"
#include "controller/role/controller_options.hpp"
#include "controller/role/probes.hpp"
#include "controller/work/batch_controller.hpp"
#include "controller/work/cluster_view.hpp"
#include "http/server.hpp"
#include "kube/access/find_cluster.hpp"
#include "kube/lease/leader_election.hpp"
#include "options/help.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"
#include "telemetry/exposition.hpp"
#include "version.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace opensandbox::controller {
namespace {

/// The published controller's: only one of both works at a time.
constexpr const char* kLease = "2fa1c467.opensandbox.io";
constexpr std::chrono::seconds kGrace{5};

int fail(const Error& error) {
    log::error("cannot start", {{"error", error.message()}});
    return 1;
}

std::string own_name() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return std::string(name) + "_" + new_hex_id();
}

kube::ConnectionSettings connection_settings(const ControllerOptions& options) {
    kube::ConnectionSettings settings;
    const kube::Rate rate{static_cast<double>(options.client_qps),
                          static_cast<double>(options.client_burst)};
    settings.reads = settings.writes = rate;
    settings.user_agent = "opensandbox-controller";
    return settings;
}

BatchSettings batch_settings(const ControllerOptions& options) {
    BatchSettings settings;
    settings.workers = static_cast<std::size_t>(options.workers);
    settings.recovery.stuck_threshold = std::chrono::seconds(options.stuck_seconds);
    settings.recovery.max_attempts = options.recovery_attempts;
    return settings;
}

/// Everything that runs, in the order in which it can be taken down.
struct Parts {
    Parts(const ControllerOptions& given, kube::Cluster cluster)
        : options(given),
          connection(io.get_executor(), std::move(cluster), connection_settings(given)),
          client(connection, "opensandbox-controller"),
          view(io.get_executor(), client, given.name_space),
          events(io.get_executor(), client),
          pools(io.get_executor(), client, view, events,
                static_cast<std::size_t>(given.pool_workers), own_name()),
          tasks(io.get_executor(), client, view, static_cast<std::size_t>(given.workers)),
          batches(io.get_executor(), client, view, events, pools, tasks, batch_settings(given)) {}

    /// Whether anything is being worked at.
    [[nodiscard]] std::size_t busy() const {
        return pools.queue().busy() + tasks.queue().busy() + batches.queue().busy();
    }
    void stop_work() {
        pools.stop();
        tasks.stop();
        batches.stop();
        view.stop();
    }

    const ControllerOptions& options;
    asio::io_context io{1};
    kube::Connection connection;
    kube::Client client;
    ClusterView view;
    EventWriter events;
    PoolController pools;
    TaskController tasks;
    BatchController batches;
    std::unique_ptr<kube::LeaderElection> election;
    std::unique_ptr<http::Server> probes;
    std::unique_ptr<http::Server> metrics;
    bool leads = false;
    bool stopping = false;
    int exit_code = 0;
};

std::string metrics_text(const Parts& parts) {
    const BatchFigures& figures = parts.batches.figures();
    telemetry::Exposition out;
    const auto counter = [&](const std::string& name, const char* help, std::uint64_t value) {
        out.metric("opensandbox_controller_" + name, "counter", help);
        out.sample(value);
    };
    counter("reconciles_total", "Looks at an object.", figures.looked);
    counter("reconcile_errors_total", "Looks that failed.", figures.failed);
    counter("pods_created_total", "Pods made.", figures.pods_made);
    counter("pods_deleted_total", "Pods removed.", figures.pods_removed);
    counter("pods_replaced_total", "Pods replaced because they hung.", figures.pods_replaced);
    counter("expired_total", "Objects removed at their time.", figures.expired);
    counter("status_writes_total", "Writes of a status.", figures.status_writes);
    const PoolTotals& pools = parts.pools.totals();
    counter("pool_reconciles_total", "Looks at a pool.", pools.looked);
    counter("pool_reconcile_errors_total", "Those that failed.", pools.failed);
    counter("pool_pods_created_total", "Pods made for pools.", pools.pods_made);
    counter("pool_pods_deleted_total", "Pods of pools removed.", pools.pods_removed);
    counter("pool_claims_total", "Pods claimed for sandboxes.", pools.claimed);
    counter("pool_claims_lost_total", "Pods that another had first.", pools.lost_claims);
    const auto gauge = [&](const std::string& name, const char* help, double value) {
        out.metric("opensandbox_controller_" + name, "gauge", help);
        out.sample(value);
    };
    gauge("objects", "BatchSandboxes that are known.",
          static_cast<double>(parts.view.batches.objects().size()));
    gauge("queue_depth", "Objects that wait.",
          static_cast<double>(parts.batches.queue().waiting()));
    gauge("leader", "Whether this process works.", parts.leads ? 1 : 0);
    return out.text();
}

Result<std::unique_ptr<http::Server>> serve_probes(Parts& parts, const std::string& address) {
    if (address == "0") return std::unique_ptr<http::Server>();
    auto place = parse_probe_address(address);
    if (!place) return place.error();
    auto listener = net::listen_tcp(parts.io.get_executor(), place->host, place->port);
    if (!listener) return listener.error().within(address);
    ProbeSources sources;
    sources.is_healthy = [] { return true; };
    // One that waits for the lease is ready to take over.
    sources.is_ready = [&parts] { return parts.view.is_synced(); };
    sources.metrics = [&parts] { return metrics_text(parts); };
    auto server =
        std::make_unique<http::Server>(parts.io.get_executor(), probe_handler(std::move(sources)));
    server->serve(std::move(*listener));
    return server;
}

Awaitable<void> work(Parts& parts) {
    constexpr std::chrono::milliseconds kStep{20};
    while (!parts.view.is_synced())
        co_await net::sleep_for(kStep);
    const auto executor = parts.io.get_executor();
    net::spawn(executor, parts.pools.work(), "pools");
    net::spawn(executor, parts.tasks.work(), "tasks");
    net::spawn(executor, parts.batches.work(), "batchsandboxes");
}

/// Who has led and does not any more may still have writes on their way: only a new process is
/// sure to have none.
void handle_lead(Parts& parts, bool leads) {
    if (leads) {
        parts.leads = true;
        log::info("leading", {{"lease", kLease}});
        net::spawn(parts.io.get_executor(), work(parts), "work");
        return;
    }
    if (parts.stopping) return;
    log::error("lost the lease; another controller leads", {{"lease", kLease}});
    parts.exit_code = 1;
    parts.io.stop();
}

void begin(Parts& parts) {
    parts.view.start();
    if (!parts.options.leader_elect) {
        parts.leads = true;
        net::spawn(parts.io.get_executor(), work(parts), "work");
        return;
    }
    kube::ElectionSettings settings;
    const std::string& space = parts.options.leader_election_namespace;
    settings.lease = {space.empty() ? parts.connection.cluster().name_space : space, kLease};
    settings.identity = own_name();
    parts.election = std::make_unique<kube::LeaderElection>(
        parts.client, std::move(settings), [&parts](bool leads) { handle_lead(parts, leads); });
    net::spawn(parts.io.get_executor(), parts.election->run(), "elect a leader");
}

Awaitable<void> run_until_signalled(Parts& parts) {
    asio::signal_set signals(parts.io, SIGTERM, SIGINT);
    begin(parts);
    log::info("controller started", {{"server", parts.connection.cluster().server},
                                     {"version", kVersion},
                                     {"leader_elect", parts.options.leader_elect}});
    co_await signals.async_wait(asio::use_awaitable);
    parts.stopping = true;
    parts.stop_work();
    const auto until = std::chrono::steady_clock::now() + kGrace;
    constexpr std::chrono::milliseconds kStep{10};
    while (parts.busy() > 0 && std::chrono::steady_clock::now() < until)
        co_await net::sleep_for(kStep);
    // The lease is given back only when nothing of ours is on its way any more.
    if (parts.election) {
        parts.election->stop();
        while (parts.election->leads() && std::chrono::steady_clock::now() < until + kGrace)
            co_await net::sleep_for(kStep);
    }
    parts.io.stop();
}

int run(const ControllerOptions& options) {
    kube::ClusterChoice choice;
    choice.kubeconfig = options.kubeconfig;
    choice.context = options.context;
    auto cluster = kube::find_cluster(choice);
    if (!cluster) return fail(cluster.error());
    Parts parts(options, std::move(*cluster));
    auto probes = serve_probes(parts, options.probe_address);
    if (!probes) return fail(probes.error().within("--health-probe-bind-address"));
    parts.probes = std::move(*probes);
    auto metrics = serve_probes(parts, options.metrics_address);
    if (!metrics) return fail(metrics.error().within("--metrics-bind-address"));
    parts.metrics = std::move(*metrics);
    net::spawn(parts.io.get_executor(), run_until_signalled(parts), "controller");
    parts.io.run();
    return parts.exit_code;
}

int print_manifests(const std::vector<std::string>& words) {
    ManifestSettings settings;
    bool help = false;
    const std::vector<options::Option> table{
        options::bound({"--image", 0, "IMAGE", "of this program (opensandbox:latest)"},
                       options::text(settings.image)),
        options::bound({"--namespace", 0, "NAME", "of controller and server (opensandbox-system)"},
                       options::text(settings.name_space)),
        options::bound({"--sandboxes", 0, "NAME", "namespace of sandboxes (opensandbox)"},
                       options::text(settings.sandboxes)),
        options::bound({"--crds", 0, "", "only the custom resources"},
                       options::constant(settings.definitions_only, true)),
        options::bound({"--help", 'h'}, options::constant(help, true)),
    };
    constexpr options::Grammar kGrammar{.unknown = "unknown flag '{word}'",
                                        .missing = "{name}: needs a value"};
    constexpr std::size_t kColumn = 20;
    const std::string usage =
        "usage: opensandbox controller manifests [flags]\n"
        "Prints what a cluster needs, for `kubectl apply -f -`.\n" +
        options::help_rows(table, kColumn);
    auto parsed = options::parse(table, kGrammar, words);
    if (!parsed) {
        std::fprintf(stderr, "controller manifests: %s\n%s", parsed.error().message().c_str(),
                     usage.c_str());
        return 2;
    }
    std::fputs(help ? usage.c_str() : to_yaml(manifests(settings)).c_str(), stdout);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!arguments.empty() && arguments.front() == "manifests") {
        arguments.erase(arguments.begin());
        return print_manifests(arguments);
    }
    auto options = parse_controller_options(arguments);
    if (!options) {
        std::fprintf(stderr, "controller: %s\n%s", options.error().message().c_str(),
                     controller_usage().c_str());
        return 2;
    }
    if (options->help) {
        std::fputs(controller_usage().c_str(), stdout);
        return 0;
    }
    std::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    log::configure(options->log_level, options->log_format, STDERR_FILENO);
    for (const std::string& name : options->ignored)
        log::warn("flag without effect", {{"flag", name}});
    return run(*options);
}

}  // namespace opensandbox::controller
