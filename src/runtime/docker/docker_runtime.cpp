#include "runtime/docker/docker_runtime.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/agent_greeting.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/own_program.hpp"
#include "runtime/host_volume.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

/// `<ossfs_mount_root>/<bucket>/<subPath>` (lifecycle 2.8).
BucketPlaces bucket_places(const DockerOptions& options) {
    BucketPlaces places;
    places.root = options.ossfs_mount_root;
    places.path = [root = options.ossfs_mount_root](const model::Volume& volume,
                                                    const std::string& /*digest*/) {
        return bucket_path(root, volume);
    };
    places.allowed_host_paths = options.allowed_host_paths;
    return places;
}

constexpr std::string_view kLoopback = "127.0.0.1";

Error initialization(const std::string& message) {
    return {ErrorCode::unavailable, "DOCKER::INITIALIZATION_ERROR", message};
}

EngineOptions engine_options(const DockerOptions& options) {
    EngineOptions engine;
    engine.call_timeout = options.api_timeout;
    return engine;
}

HostPorts::Probe port_probe(const DockerOptions& options, bool local) {
    // Ports of another host cannot be tried from here; the engine's own check is left.
    if (!local) return [](std::uint16_t) { return true; };
    return [host = options.publish_host](std::uint16_t port) { return can_bind(host, port); };
}

/// The store holds it alive as a unique_ptr; its own tasks hold it as a shared one.
class Handle final : public Runtime {
  public:
    explicit Handle(std::shared_ptr<DockerRuntime> runtime) : runtime_(std::move(runtime)) {}

    [[nodiscard]] std::string_view error_prefix() const override {
        return runtime_->error_prefix();
    }
    Awaitable<Status> start() override { return runtime_->start(); }
    Awaitable<Result<Endpoints>> create(SandboxSpec spec) override {
        return runtime_->create(std::move(spec));
    }
    [[nodiscard]] std::string image_digest(const std::string& id) const override {
        return runtime_->image_digest(id);
    }
    [[nodiscard]] std::string interception_mode(const std::string& id) const override {
        return runtime_->interception_mode(id);
    }
    Awaitable<Status> destroy(std::string id) override { return runtime_->destroy(std::move(id)); }
    Awaitable<Result<std::vector<Observed>>> list() override { return runtime_->list(); }
    void on_exit(std::function<void(const std::string&, const Exit&)> listener) override {
        runtime_->on_exit(std::move(listener));
    }
    void on_change(std::function<void(const std::string&, Change)> listener) override {
        runtime_->on_change(std::move(listener));
    }
    [[nodiscard]] Figures figures() const override { return runtime_->figures(); }
    [[nodiscard]] Capabilities capabilities() const override { return runtime_->capabilities(); }
    Awaitable<Status> pause(std::string id) override { return runtime_->pause(std::move(id)); }
    Awaitable<Status> resume(std::string id) override { return runtime_->resume(std::move(id)); }
    Awaitable<Result<SnapshotReference>> snapshot(std::string sandbox_id,
                                                  std::string snapshot_id) override {
        return runtime_->snapshot(std::move(sandbox_id), std::move(snapshot_id));
    }
    Awaitable<Status> remove_snapshot(SnapshotReference snapshot) override {
        return runtime_->remove_snapshot(std::move(snapshot));
    }
    Awaitable<Result<std::vector<SnapshotReference>>> list_snapshots() override {
        return runtime_->list_snapshots();
    }
    Awaitable<Result<std::string>> logs(std::string id, LogQuery query) override {
        return runtime_->logs(std::move(id), query);
    }
    Awaitable<Result<Inspection>> inspect(std::string id) override {
        return runtime_->inspect(std::move(id));
    }
    Awaitable<void> stop() override { return runtime_->stop(); }

  private:
    std::shared_ptr<DockerRuntime> runtime_;
};

/// Root of a container is root of the host, and the engine binds nothing with less than its mount
/// has.
void warn_of_rights(const AllowedHostPaths& places) {
    for (const std::string& place : places) {
        if (!lends_rights(place)) continue;
        log::warn(
            "sandboxes can leave set-id programs of root where users of the host can run them: "
            "mount it nosuid, or keep it in a directory that only root may enter",
            {{"storage.allowed_host_paths", place}});
    }
}

}  // namespace

Result<std::unique_ptr<Runtime>> make_docker_runtime(asio::any_io_executor executor,
                                                     asio::thread_pool& blocking,
                                                     DockerOptions options) {
    auto address = find_engine();
    if (!address) return initialization(address.error().message());
    auto runtime = std::make_shared<DockerRuntime>(executor, blocking, std::move(options),
                                                   std::move(*address));
    return std::unique_ptr<Runtime>(std::make_unique<Handle>(std::move(runtime)));
}

DockerRuntime::DockerRuntime(asio::any_io_executor executor, asio::thread_pool& blocking,
                             DockerOptions options, EngineAddress address)
    : executor_(executor),
      blocking_(blocking),
      options_(std::move(options)),
      engine_(executor, address, engine_options(options_)),
      agent_(executor, engine_, blocking, options_),
      sidecar_image_(executor, engine_, blocking, options_),
      buckets_(executor, bucket_places(options_)),
      ports_(options_.port_range_min, options_.port_range_max,
             port_probe(options_, address.is_local())),
      probes_(executor, probe_options()) {}

Awaitable<Status> DockerRuntime::start() {
    std::function<Result<std::string>()> work = [directory = options_.state_directory,
                                                 places = options_.allowed_host_paths] {
        warn_of_rights(places);
        return server_id(directory);
    };
    auto id = co_await net::run_blocking<Result<std::string>>(blocking_, std::move(work));
    if (!id) co_return initialization(id.error().message());
    server_id_ = std::move(*id);
    auto version = co_await engine_.version();
    if (!version) co_return initialization(version.error().message());
    version_ = std::move(*version);
    if (!agent_.foreign() && version_.architecture != own_architecture()) {
        co_return initialization("the Docker engine at " + engine_.address().text + " runs on " +
                                 version_.architecture + ", this program's agent on " +
                                 std::string(own_architecture()) +
                                 " only; set runtime.execd_image to one of that platform");
    }
    if (!options_.oci_runtime.empty()) {
        auto info = co_await engine_.info();
        if (!info) co_return initialization(info.error().message());
        if (!info->has_runtime(options_.oci_runtime)) {
            co_return initialization("secure_runtime: the Docker engine has no runtime '" +
                                     options_.oci_runtime + "'");
        }
    }
    auto identified = co_await agent_.identify();
    if (!identified) co_return initialization(identified.error().message());
    auto stream = co_await open_watch();
    if (!stream) co_return initialization(stream.error().message());
    spawn(watch(std::move(*stream)), "watch the Docker engine");
    log::info("docker engine", {{"address", engine_.address().text},
                                {"version", version_.version},
                                {"network_mode", options_.network_mode}});
    co_return Status();
}

Awaitable<void> DockerRuntime::stop() {
    stopping_ = true;
    if (stream_) stream_->close();
    co_return;
}

void DockerRuntime::on_exit(std::function<void(const std::string&, const Exit&)> listener) {
    on_exit_ = std::move(listener);
}

void DockerRuntime::on_change(std::function<void(const std::string&, Change)> listener) {
    on_change_ = std::move(listener);
}

Figures DockerRuntime::figures() const {
    Figures figures;
    figures.sandboxes = known_.size();
    return figures;
}

Capabilities DockerRuntime::capabilities() const {
    Capabilities can;
    can.pause = true;
    can.snapshots = true;
    can.isolation = true;
    can.network_policy = true;  // refused in create where it is not configured
    can.credential_proxy = true;
    can.host_volumes = true;
    can.claim_volumes = true;
    can.bucket_volumes = true;
    can.gpus = true;
    can.foreign_platforms = true;
    can.outlives_requests = true;
    return can;
}

Known* DockerRuntime::known(const std::string& id) {
    auto at = known_.find(id);
    return at == known_.end() ? nullptr : &at->second;
}

std::string DockerRuntime::container_of(const std::string& id) const {
    auto at = known_.find(id);
    bool has_id = at != known_.end() && !at->second.container.empty();
    return has_id ? at->second.container : container_name(id);
}

std::string DockerRuntime::proxy_host() const {
    const std::string& published = options_.publish_host;
    if (published != "0.0.0.0") return published;
    const EngineAddress& engine = engine_.address();
    if (!engine.is_local() && !engine.host.empty()) return engine.host;
    return options_.host_ip.empty() ? std::string(kLoopback) : options_.host_ip;
}

Endpoints DockerRuntime::endpoints(std::uint16_t agent_port, std::uint16_t http_port,
                                   std::string internal_host) const {
    Endpoints out;
    if (options_.network_mode == "host") {
        out.agent = AgentAddress(
            engine_.address().is_local() ? std::string(kLoopback) : engine_.address().host,
            kAgentPort);
        out.host_network = true;
        return out;
    }
    out.agent = AgentAddress(proxy_host(), agent_port);
    out.http_port = http_port;
    out.internal_host = std::move(internal_host);
    return out;
}

void DockerRuntime::guard(Endpoints& endpoints, const std::string& token, std::uint16_t port) {
    if (token.empty()) return;
    endpoints.internal_host.clear();
    endpoints.egress_token = token;
    if (port != 0) endpoints.published.emplace_back(kEgressPort, port);
}

std::string DockerRuntime::internal_host(const std::vector<NetworkEndpoint>& networks,
                                         const std::string& fallback) const {
    // Containers of another host, or of an engine in another machine, have addresses there only.
    if (!options_.resolve_internal || !engine_.address().is_local()) return {};
    for (const auto& network : networks) {
        if (network.network == options_.network_mode && !network.ip_address.empty()) {
            return network.ip_address;
        }
    }
    if (!fallback.empty()) return fallback;
    for (const auto& network : networks) {
        if (!network.ip_address.empty()) return network.ip_address;
    }
    return {};
}

/// The task keeps this object alive until it ends.
void DockerRuntime::spawn(Awaitable<void> task, std::string_view name) {
    auto hold = [](std::shared_ptr<DockerRuntime> self, Awaitable<void> inner) -> Awaitable<void> {
        co_await std::move(inner);
        (void)self;
    };
    net::spawn(executor_, hold(shared_from_this(), std::move(task)), name);
}

Error DockerRuntime::failure(std::string_view code, const std::string& message) {
    return {ErrorCode::internal, "DOCKER::" + std::string(code), message};
}

}  // namespace opensandbox::runtime::docker
