#include "server/role/serve.hpp"

#include "base/descriptor_limit.hpp"
#include "base/freed_memory.hpp"
#include "base/log.hpp"
#include "base/state_directory.hpp"
#include "http/server.hpp"
#include "json/yaml.hpp"
#include "kube/access/find_cluster.hpp"
#include "kube/access/small_file.hpp"
#include "lifecycle/cluster/cluster_lifecycle.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "registry/keychain.hpp"
#include "registry/registries.hpp"
#include "runtime/docker/docker_runtime.hpp"
#include "runtime/native/host/gvisor_program.hpp"
#include "runtime/native/server/native_runtime.hpp"
#include "server/api/app.hpp"
#include "server/auth.hpp"
#include "server/background/background.hpp"
#include "server/background/log_files.hpp"
#include "server/config/egress_settings.hpp"
#include "server/proxy/endpoint_address.hpp"
#include "server/role/startup.hpp"
#include "store/state_lock.hpp"
#include "version.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace opensandbox::server {
namespace {

constexpr std::size_t kBlockingThreads = 4;
constexpr std::size_t kImageThreads = 2;
/// How long a backend may take to its first byte (lifecycle 3.3).
constexpr std::chrono::seconds kBackendTimeout{180};

/// For the answer of a person at a terminal (lifecycle 7.4).
constexpr std::chrono::seconds kPromptPatience{30};

/// For each part to end in when the time that the server may take to stop is over.
constexpr std::chrono::milliseconds kLeastPatience{500};

int fail(const Error& error) {
    if (error.wire().empty()) {
        log::error("cannot start", {{"error", error.message()}});
    } else {
        log::error("cannot start", {{"code", error.wire()}, {"error", error.message()}});
    }
    return 1;
}

/// Everything the running server owns, in the order in which it can be taken down: what is declared
/// last goes first.
struct Parts {
    const Config& config;
    std::unique_ptr<store::SandboxStore> store;  ///< null: all that is kept is in a cluster
    std::unique_ptr<image::Store> images;
    asio::io_context io{1};
    asio::thread_pool blocking{kBlockingThreads};
    asio::thread_pool image_pool{kImageThreads};
    std::unique_ptr<registry::Registries> registries;
    std::unique_ptr<runtime::Runtime> runtime;  ///< null: sandboxes are not of this host
    std::shared_ptr<lifecycle::Lifecycle> lifecycle;
    std::unique_ptr<http::Server> server;
    std::unique_ptr<Background> background;
    int exit_code = 1;

    ~Parts() {
        // Nothing may still run on the pools when what it works with goes.
        blocking.join();
        image_pool.join();
    }
};

Awaitable<Status> pull_for_create(registry::Registries& registries, std::string reference,
                                  std::optional<model::RegistryLogin> login) {
    auto pulled = co_await registries.pull(std::move(reference), std::move(login));
    if (!pulled) co_return pulled.error();
    co_return Status();
}

std::unique_ptr<runtime::Runtime> make_native(Parts& parts,
                                              const std::filesystem::path& state_dir) {
    runtime::native::NativeOptions native;
    native.state_directory = state_dir;
    native.address_range = parts.config.address_range;
    native.address_range6 = parts.config.address_range6;
    native.pool = parts.config.pool;
    native.warm = parts.config.warm;
    native.publish_host = parts.config.publish_host;
    native.defaults = parts.config.native_limits;
    native.network_off = parts.config.native_network_off;
    native.allowed_host_paths = parts.config.allowed_host_paths;
    native.pull_always = parts.config.registry.policy == registry::PullPolicy::always;
    if (parts.config.registry.policy != registry::PullPolicy::never) {
        native.pull_image = [registries = parts.registries.get()](
                                std::string reference, std::optional<model::RegistryLogin> login) {
            return pull_for_create(*registries, std::move(reference), std::move(login));
        };
    }
    native.egress = native_egress_settings(parts.config);
    native.runsc = parts.config.runsc;
    native.rootless = parts.config.rootless;
    return runtime::native::make_native_runtime(parts.io.get_executor(), parts.blocking,
                                                *parts.images, native);
}

Result<std::unique_ptr<runtime::Runtime>> make_docker(Parts& parts,
                                                      const std::filesystem::path& state_dir) {
    runtime::docker::DockerOptions docker = parts.config.docker;
    docker.state_directory = state_dir;
    docker.resolve_internal = parts.config.resolve_internal;
    docker.egress = parts.config.sidecar;
    docker.allowed_host_paths = parts.config.allowed_host_paths;
    if (!in_container()) docker.host_ip.clear();
    return runtime::docker::make_docker_runtime(parts.io.get_executor(), parts.blocking,
                                                std::move(docker));
}

/// A template of the operator's: it must be there, and an object.
Result<json::object> read_manifest(const std::filesystem::path& file) {
    const std::string_view key = "kubernetes.batchsandbox_template_file";
    auto text = kube::read_small_file(file);
    if (!text) return text.error().within(key);
    auto document = json::parse_yaml(*text);
    if (!document) return document.error().within(file.string()).within(key);
    if (!document->is_object()) return invalid(std::string(key) + ": must hold a YAML object");
    return std::move(document->get_object());
}

Result<std::shared_ptr<lifecycle::Lifecycle>> make_cluster(Parts& parts) {
    lifecycle::ClusterSettings settings;
    settings.options = parts.config.kubernetes;
    settings.max_timeout_seconds = parts.config.max_sandbox_timeout_seconds;
    settings.has_tenants = parts.config.tenants.enabled;
    if (!settings.options.template_file.empty()) {
        auto manifest = read_manifest(settings.options.template_file);
        if (!manifest) return manifest.error();
        settings.options.manifest = std::move(*manifest);
    }
    kube::ClusterChoice choice;
    choice.kubeconfig = settings.options.kubeconfig;
    choice.context = settings.options.context;
    auto cluster = kube::find_cluster(choice);
    if (!cluster) return cluster.error().within("kubernetes");
    if (settings.options.skip_verification) cluster->tls.verify = false;
    return std::shared_ptr<lifecycle::Lifecycle>(std::make_shared<lifecycle::ClusterLifecycle>(
        parts.io.get_executor(), std::move(*cluster), std::move(settings)));
}

Status make_runtime(Parts& parts, const std::filesystem::path& state_dir) {
    registry::RegistryOptions options = parts.config.registry;
    options.credentials = registry::CredentialFile::in(state_dir).path();
    options.docker_config = registry::Keychain::default_docker_config();
    parts.registries = std::make_unique<registry::Registries>(parts.io.get_executor(),
                                                              *parts.images, std::move(options));
    if (parts.config.runtime == RuntimeType::kubernetes) {
        auto cluster = make_cluster(parts);
        if (!cluster) return cluster.error();
        parts.lifecycle = std::move(*cluster);
        return {};
    }
    if (parts.config.runtime == RuntimeType::docker) {
        auto docker = make_docker(parts, state_dir);
        if (!docker) return docker.error();
        parts.runtime = std::move(*docker);
    } else {
        parts.runtime = make_native(parts, state_dir);
    }
    lifecycle::AdmissionRules rules;
    rules.error_prefix = parts.runtime->error_prefix();
    rules.arch = lifecycle::host_arch();
    rules.capabilities = parts.runtime->capabilities();
    rules.max_timeout_seconds = parts.config.max_sandbox_timeout_seconds;
    parts.lifecycle = std::make_shared<lifecycle::HostLifecycle>(
        parts.io.get_executor(), parts.blocking, *parts.store, *parts.runtime, std::move(rules));
    return {};
}

Status make_server(Parts& parts, std::string api_key) {
    const Config& config = parts.config;
    auto executor = parts.io.get_executor();
    http::ClientOptions towards_agents;
    towards_agents.head_timeout = kBackendTimeout;
    auto services =
        std::make_unique<Services>(config, std::move(api_key), parts.lifecycle, *parts.images,
                                   parts.image_pool, executor, towards_agents);
    services->registries = parts.registries.get();
    services->public_host = public_host(config, in_container(), outward_ipv4);
    auto background = Background::start(executor, *services);
    if (!background) return background.error();
    parts.background = std::move(background.value());
    http::ServerOptions options;
    options.idle_timeout = std::chrono::seconds(config.timeout_keep_alive);
    options.max_connections = static_cast<std::size_t>(config.limit_connections);
    options.tells_authorized = true;
    options.unauthorized_send_timeout = std::chrono::seconds(config.timeout_send);
    parts.server = std::make_unique<http::Server>(
        executor, App::handler(std::make_shared<App>(std::move(services))), options);
    return {};
}

Awaitable<void> run_until_signalled(Parts& parts) {
    const Config& config = parts.config;
    asio::signal_set signals(parts.io, SIGTERM, SIGINT);
    auto listener = net::listen_tcp(parts.io.get_executor(), config.host, config.port);
    if (!listener) {
        auto error = listener.error().within("server.host, server.port");
        parts.exit_code = fail(error);
        co_return;
    }
    auto started = co_await parts.lifecycle->start();
    if (!started) {
        parts.exit_code = fail(started.error());
        co_return;
    }
    std::string url = "http://" + join_host_port(config.host, listener.value()->port());
    parts.server->serve(std::move(listener.value()));
    log::info("listening", {{"url", url}, {"version", kVersion}});
    std::printf("listening on %s\n", url.c_str());
    std::fflush(stdout);

    co_await signals.async_wait(asio::use_awaitable);
    auto grace = std::chrono::seconds(config.timeout_graceful_shutdown);
    log::info("stopping; sandboxes live on", {{"grace_seconds", config.timeout_graceful_shutdown}});
    parts.background->stop();
    // One time for all: what is under way longer is cut.
    const auto until = std::chrono::steady_clock::now() + grace;
    const auto left = [&] {
        const auto time = until - std::chrono::steady_clock::now();
        return std::max(kLeastPatience, std::chrono::ceil<std::chrono::milliseconds>(time));
    };
    co_await parts.server->drain(grace);
    co_await parts.lifecycle->stop(left());
    co_await parts.registries->stop(kLeastPatience);
    if (parts.runtime) co_await parts.runtime->stop();
    parts.exit_code = 0;
}

Awaitable<void> run_and_stop(Parts& parts) {
    co_await run_until_signalled(parts);
    parts.io.stop();
}

/// Configuration from its file and the flags.
Result<Config> configure(const ServeOptions& options) {
    Config config;
    if (auto file = find_config(options.config); !file.empty()) {
        auto loaded = load_config(file);
        if (!loaded) return loaded.error();
        config = std::move(loaded.value());
    }
    apply(options, config);
    if (auto applied = apply_environment(config); !applied) return applied.error();
    if (config.state_dir.empty()) config.state_dir = default_state_directory();
    return config;
}

/// What was found in place of what was asked for: the spawner has no PATH.
Status find_secure_runtime(Config& config) {
    if (config.runtime != RuntimeType::native || config.runsc.empty()) return {};
    if (config.rootless) {
        return Error(ErrorCode::unsupported,
                     "secure_runtime.type: only root's server can run sandboxes under gVisor");
    }
    auto found = runtime::native::find_gvisor(config.runsc);
    if (!found) return found.error().within("secure_runtime.runsc");
    config.runsc = found->string();
    return {};
}

int serve(const Config& config) {
    auto lock = store::StateLock::acquire(config.state_dir);
    if (!lock) return fail(lock.error());
    auto api_key = resolve_api_key(config, config.state_dir);
    if (!api_key) return fail(api_key.error());
    const char* insecure = std::getenv("OPENSANDBOX_INSECURE_SERVER");
    bool guarded = config.tenants.enabled || !api_key->empty();
    if (!guarded) {
        auto refusal = startup_refusal(config.host, *api_key, insecure ? insecure : "");
        if (refusal && !confirm_insecure_start(STDIN_FILENO, STDERR_FILENO, kPromptPatience))
            return fail(Error(ErrorCode::permission_denied, *refusal));
    }
    if (!guarded) log::warn("no API key: whoever reaches this server controls it");
    for (const std::string& note : config.ignored)
        log::warn("setting without effect", {{"setting", note}});

    std::unique_ptr<store::SandboxStore> store;
    if (config.runtime != RuntimeType::kubernetes) {
        auto store_path =
            config.store_path.empty() ? config.state_dir / "opensandbox.db" : config.store_path;
        auto opened = store::SandboxStore::open(store_path);
        if (!opened) return fail(opened.error());
        store = std::move(*opened);
    }
    auto images = image::Store::open(config.state_dir / "images");
    if (!images) return fail(images.error());

    Parts parts(config, std::move(store), std::move(images.value()));
    if (auto made = make_runtime(parts, config.state_dir); !made) return fail(made.error());
    if (auto made = make_server(parts, std::move(api_key.value())); !made)
        return fail(made.error());
    net::spawn(parts.io.get_executor(), run_and_stop(parts), "serve");
    parts.io.run();
    return parts.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    auto options = parse_serve_options(arguments);
    if (!options) {
        std::fprintf(stderr, "serve: %s\n%s", options.error().message().c_str(),
                     serve_usage().c_str());
        return 2;
    }
    if (options->help) {
        std::fputs(serve_usage().c_str(), stdout);
        return 0;
    }
    std::signal(SIGPIPE, SIG_IGN);
    // Every connection, proxied request and sandbox's event stream takes one.
    raise_descriptor_limit();
    keep_freed_memory();
    auto config = configure(*options);
    if (!config) {
        std::fprintf(stderr, "serve: %s\n", config.error().message().c_str());
        return 1;
    }
    log::configure(config->log_level, config->log_format, STDERR_FILENO);
    config->rootless = config->runtime == RuntimeType::native && ::geteuid() != 0;
    if (auto found = find_secure_runtime(*config); !found) return fail(found.error());
    if (config->rootless) {
        auto entered = runtime::native::enter_user_namespace(config->state_dir);
        if (!entered) return fail(entered.error().within("native runtime for an ordinary user"));
    }
    auto files = LogFiles::open(config->log_file);
    if (!files) return fail(files.error());
    return serve(*config);
}

}  // namespace opensandbox::server
