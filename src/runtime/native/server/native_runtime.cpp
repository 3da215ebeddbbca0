#include "runtime/native/server/native_runtime.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/network/pasta.hpp"
#include "runtime/native/records/boot_record.hpp"
#include "runtime/native/records/inspection_text.hpp"
#include "runtime/native/records/spawner_options.hpp"
#include "runtime/native/server/egress_plan.hpp"
#include "runtime/native/server/readings.hpp"
#include "runtime/native/server/request_plan.hpp"
#include "runtime/native/server/sandbox_buckets.hpp"
#include "runtime/native/server/spawner_link.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

namespace opensandbox::runtime::native {

namespace {

/// Files of a writable layer that are looked at to tell its size.
constexpr std::size_t kMostCounted = 200'000;
/// A sandbox that has not ended by then may wait for a bucket that does not answer.
constexpr std::chrono::seconds kHangLimit{10};

class NativeRuntime final : public Runtime {
  public:
    NativeRuntime(asio::any_io_executor executor, asio::thread_pool& blocking, image::Store& images,
                  const NativeOptions& options)
        : executor_(executor),
          blocking_(&blocking),
          state_directory_(options.state_directory),
          images_(&images),
          planner_(images, options),
          pull_image_(options.pull_image),
          pull_always_(options.pull_always),
          rootless_(options.rootless),
          gvisor_(!options.runsc.empty()),
          host_restarted_(restarted_since(options.state_directory)),
          buckets_(executor, options.state_directory, options.allowed_host_paths),
          link_(std::make_shared<SpawnerLink>(std::move(executor), blocking, options)) {
        images.protect([state = options.state_directory](const std::string& digest) {
            return image_needed(state, digest);
        });
    }

    ~NativeRuntime() override { link_->stop(); }

    [[nodiscard]] std::string_view error_prefix() const override { return "NATIVE"; }
    [[nodiscard]] bool host_restarted() const override { return host_restarted_; }
    [[nodiscard]] Figures figures() const override { return link_->figures(); }
    void on_exit(std::function<void(const std::string&, const Exit&)> listener) override {
        link_->on_exit(std::move(listener));
    }

    Awaitable<Status> start() override {
        // The built-in image takes its time once; better now than in the first create.
        asio::post(*blocking_, [images = images_] {
            if (auto host = images->resolve("host"); !host) {
                log::warn("image host is not ready", {{"error", host.error().message()}});
            }
        });
        auto started = co_await link_->start();
        if (!started) co_return started;
        if (!gvisor_) co_await keep_warm();
        co_await restore_buckets();
        co_return started;
    }
    Awaitable<Result<Endpoints>> create(SandboxSpec spec) override;
    [[nodiscard]] std::string image_digest(const std::string& id) const override {
        const auto found = digests_.find(id);
        return found == digests_.end() ? std::string() : found->second;
    }
    [[nodiscard]] std::string interception_mode(const std::string& id) const override {
        const auto found = interception_modes_.find(id);
        return found == interception_modes_.end() ? std::string() : found->second;
    }
    Awaitable<Status> destroy(std::string id) override;
    Awaitable<Result<std::vector<Observed>>> list() override;
    [[nodiscard]] Capabilities capabilities() const override {
        Capabilities capabilities;
        capabilities.pause = true;
        capabilities.snapshots = true;
        capabilities.snapshot_content = true;
        capabilities.forks = true;
        capabilities.pools = true;
        capabilities.hooks = true;
        capabilities.host_volumes = true;
        capabilities.claim_volumes = true;
        // Its tool needs to be root of the host for others to see what it mounts.
        capabilities.bucket_volumes = !rootless_;
        capabilities.fine_limits = true;
        capabilities.networks = true;
        capabilities.memory_volumes = true;
        // Enforced on the link to the host, which an ordinary user's sandboxes have with pasta.
        capabilities.network_policy = !rootless_ || find_pasta();
        capabilities.credential_proxy = capabilities.network_policy;
        return capabilities;
    }
    Awaitable<Status> pause(std::string id) override;
    Awaitable<Status> resume(std::string id) override;
    Awaitable<Result<SnapshotReference>> snapshot(std::string sandbox_id,
                                                  std::string snapshot_id) override;
    Awaitable<Result<SnapshotReference>> fork(std::string sandbox_id, std::string fork_id) override;
    Awaitable<Status> remove_snapshot(SnapshotReference snapshot) override;
    Awaitable<Result<std::vector<SnapshotReference>>> list_snapshots() override;
    Awaitable<Result<SnapshotContent>> open_snapshot(SnapshotReference snapshot) override;
    Awaitable<Result<std::string>> logs(std::string id, LogQuery query) override;
    Awaitable<Result<Inspection>> inspect(std::string id) override;
    Awaitable<Result<std::vector<SandboxUsage>>> usage(std::size_t limit) override;
    Awaitable<void> stop() override {
        link_->stop();
        co_return;
    }

  private:
    /// On failure volumes that were `made` for it, and buckets, are left.
    Awaitable<Result<Endpoints>> make(std::shared_ptr<const SandboxSpec> spec,
                                      std::shared_ptr<std::vector<std::string>> made);
    Awaitable<Result<CreateRequest>> plan(std::shared_ptr<const SandboxSpec> spec,
                                          std::shared_ptr<std::vector<std::string>> made);
    Awaitable<Status> pull(std::string image, std::optional<model::RegistryLogin> login);
    Awaitable<void> restore_buckets();
    Awaitable<Result<SnapshotReference>> keep(std::string sandbox, std::string name,
                                              bool for_copies);

    /// Tells the spawner which images declare programs to be started ahead; before the first
    /// create, which may name others.
    Awaitable<void> keep_warm() {
        std::function<std::vector<CreateRequest>()> plan = [planner = planner_] {
            return planner.warm_images();
        };
        link_->keep_warm(
            co_await net::run_blocking<std::vector<CreateRequest>>(*blocking_, std::move(plan)));
    }

    /// What only looks is asked once more, of the spawner that took the place of a lost one.
    template <class T, class Ask>
    Awaitable<Result<T>> look(Ask ask) {
        Result<T> seen = Error();
        for (int round = 0; round < 2; ++round) {
            auto client = co_await link_->client();
            if (!client) co_return Result<T>(client.error());
            seen = co_await ask(**client);
            if (seen || seen.error().code() != ErrorCode::unavailable) break;
        }
        co_return seen;
    }

    asio::any_io_executor executor_;
    asio::thread_pool* blocking_;
    std::filesystem::path state_directory_;
    image::Store* images_;
    RequestPlanner planner_;
    decltype(NativeOptions::pull_image) pull_image_;
    bool pull_always_;
    bool rootless_;
    bool gvisor_;
    bool host_restarted_;
    std::map<std::string, std::string> digests_;  ///< of the images of sandboxes made here
    std::map<std::string, std::string> interception_modes_;  ///< of sandboxes made here
    SandboxBuckets buckets_;
    std::shared_ptr<SpawnerLink> link_;
};

/// The image's registry decides how long this takes; the create waits for it.
Awaitable<Status> NativeRuntime::pull(std::string image,
                                      std::optional<model::RegistryLogin> login) {
    auto pulled = co_await pull_image_(image, std::move(login));
    if (pulled) co_return pulled;
    Error error = pulled.error();
    // What is wrong with the name itself says so.
    if (error.code() == ErrorCode::invalid_argument && error.wire().empty() &&
        !image::normalize_reference(image)) {
        co_return error;
    }
    co_return error.as("NATIVE::SANDBOX_IMAGE_PULL_FAILED");
}

/// Buckets outlive the server, as sandboxes do.
Awaitable<void> NativeRuntime::restore_buckets() {
    if (rootless_) co_return;
    auto there = co_await list();
    if (!there) {
        log::warn("buckets of an earlier server stay mounted",
                  {{"reason", there.error().message()}});
        co_return;
    }
    std::set<std::string> alive;
    for (const Observed& sandbox : *there)
        alive.insert(sandbox.id);
    co_await buckets_.restore(std::move(alive));
}

Awaitable<Result<CreateRequest>> NativeRuntime::plan(
    std::shared_ptr<const SandboxSpec> spec, std::shared_ptr<std::vector<std::string>> made) {
    using Planned = Result<CreateRequest>;
    const bool pullable = pull_image_ && !spec->snapshot;
    if (pullable && pull_always_) {
        auto name = image::normalize_reference(spec->image);
        Status pulled;
        if (!name || *name != "host") pulled = co_await pull(spec->image, spec->image_auth);
        if (!pulled) co_return Planned(pulled.error());
    }
    if (!pull_always_) {
        auto at_once = planner_.plan_at_once(*spec);
        if (at_once) co_return std::move(*at_once);
    }
    std::function<Planned()> work = [this, spec, made] { return planner_.plan(*spec, *made); };
    auto planned = co_await net::run_blocking<Planned>(*blocking_, work);
    const bool missing = !planned && planned.error().code() == ErrorCode::not_found &&
                         planned.error().wire() == "NATIVE::SANDBOX_IMAGE_PULL_FAILED";
    if (!missing || !pullable || pull_always_) co_return planned;
    auto pulled = co_await pull(spec->image, spec->image_auth);
    if (!pulled) co_return Planned(pulled.error());
    co_return co_await net::run_blocking<Planned>(*blocking_, std::move(work));
}

Awaitable<Result<Endpoints>> NativeRuntime::create(SandboxSpec asked) {
    using Created = Result<Endpoints>;
    const auto spec = std::make_shared<const SandboxSpec>(std::move(asked));
    if (spec->entrypoint.empty()) {
        co_return Created(Error(ErrorCode::invalid_argument, "entrypoint: must not be empty"));
    }
    auto made = std::make_shared<std::vector<std::string>>();
    auto created = co_await make(spec, made);
    if (created) co_return created;
    if (buckets_.any(spec->id)) co_await buckets_.release(spec->id);
    if (!made->empty()) {
        asio::post(*blocking_, [planner = planner_, made] { planner.undo(*made); });
    }
    co_return created;
}

Awaitable<Result<Endpoints>> NativeRuntime::make(std::shared_ptr<const SandboxSpec> spec,
                                                 std::shared_ptr<std::vector<std::string>> made) {
    using Created = Result<Endpoints>;
    auto request = co_await plan(spec, std::move(made));
    if (!request) co_return Created(request.error());
    auto mounted = co_await buckets_.acquire(spec, *request);
    if (!mounted) co_return Created(mounted.error());
    std::string digest;
    if (!spec->snapshot && images_->has_manifest(request->plan.image.digest)) {
        digest = request->plan.image.digest;
    }
    std::string interception = native::interception_mode(request->egress);
    std::string egress_token;
    if (request->egress.wanted) egress_token = request->egress.token = new_token();
    auto spawner = co_await link_->client();
    if (!spawner) co_return Created(spawner.error());
    auto reply = co_await (*spawner)->ask(std::move(*request));
    if (!reply) co_return Created(reply.error());
    const HostPorts& ports = reply->ports;
    Endpoints endpoints(AgentAddress((*spawner)->spawner().publish_host, ports.agent));
    endpoints.egress_port = ports.egress;
    endpoints.egress_token = std::move(egress_token);
    const auto& inside = spec->network.published;
    for (std::size_t i = 0; i < std::min(inside.size(), ports.published.size()); ++i) {
        endpoints.published.emplace_back(inside[i], static_cast<std::uint16_t>(ports.published[i]));
    }
    if (!digest.empty()) digests_.emplace(spec->id, std::move(digest));
    if (!interception.empty()) interception_modes_.emplace(spec->id, std::move(interception));
    co_return Created(std::move(endpoints));
}

Awaitable<Status> NativeRuntime::destroy(std::string id) {
    digests_.erase(id);
    interception_modes_.erase(id);
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    const bool has_bucket = buckets_.any(id);
    std::optional<net::Deadline> hung;
    if (has_bucket) hung.emplace(executor_, kHangLimit, [this, id] { buckets_.cut_off(id); });
    auto status = co_await (*client)->destroy(id);
    hung.reset();
    if (!status) co_return status;
    link_->forget(id);
    if (has_bucket) co_await buckets_.release(std::move(id));
    co_return status;
}

Awaitable<Result<std::vector<Observed>>> NativeRuntime::list() {
    co_return co_await look<std::vector<Observed>>(
        [](SpawnerClient& spawner) { return spawner.list(); });
}

Awaitable<Status> NativeRuntime::pause(std::string id) {
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    co_return co_await (*client)->pause(std::move(id));
}

Awaitable<Status> NativeRuntime::resume(std::string id) {
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    co_return co_await (*client)->resume(std::move(id));
}

Awaitable<Result<SnapshotReference>> NativeRuntime::snapshot(std::string sandbox_id,
                                                             std::string snapshot_id) {
    return keep(std::move(sandbox_id), std::move(snapshot_id), false);
}

Awaitable<Result<SnapshotReference>> NativeRuntime::fork(std::string sandbox_id,
                                                         std::string fork_id) {
    return keep(std::move(sandbox_id), std::move(fork_id), true);
}

Awaitable<Result<SnapshotReference>> NativeRuntime::keep(std::string sandbox, std::string name,
                                                         bool for_copies) {
    using Taken = Result<SnapshotReference>;
    SnapshotReference reference(name, name);
    auto client = co_await link_->client();
    if (!client) co_return Taken(client.error());
    auto status = co_await (*client)->snapshot(sandbox, name, for_copies);
    if (status) co_return Taken(std::move(reference));
    const bool unknown = status.error().code() == ErrorCode::unavailable ||
                         status.error().code() == ErrorCode::timeout;
    if (!unknown) co_return Taken(status.error());
    // It may have been made all the same: the next spawner is asked to see to it that it was not.
    auto removed = co_await remove_snapshot(reference);
    if (!removed) {
        log::warn("a snapshot that failed may be left",
                  {{"snapshot", name}, {"reason", removed.error().message()}});
    }
    co_return Taken(status.error());
}

Awaitable<Status> NativeRuntime::remove_snapshot(SnapshotReference snapshot) {
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    co_return co_await (*client)->remove_snapshot(std::move(snapshot.id));
}

Awaitable<Result<std::vector<SnapshotReference>>> NativeRuntime::list_snapshots() {
    using Listed = Result<std::vector<SnapshotReference>>;
    std::function<Listed()> read = [files = planner_.snapshots()]() -> Listed {
        auto records = files.read_all();
        if (!records) return records.error();
        std::vector<SnapshotReference> out;
        for (const SnapshotRecord& record : *records) {
            if (record.source) continue;
            out.emplace_back(record.id, record.id);
            // The state directory is this server's alone.
            out.back().owned = true;
        }
        return out;
    };
    co_return co_await net::run_blocking<Listed>(*blocking_, std::move(read));
}

Awaitable<Result<SnapshotContent>> NativeRuntime::open_snapshot(SnapshotReference snapshot) {
    using Opened = Result<SnapshotContent>;
    std::function<Opened()> read = [files = planner_.snapshots(), name = std::move(snapshot.id)] {
        return snapshot_content(files, name);
    };
    co_return co_await net::run_blocking<Opened>(*blocking_, std::move(read));
}

Awaitable<Result<std::string>> NativeRuntime::logs(std::string id, LogQuery query) {
    using Shown = Result<std::string>;
    auto log =
        co_await look<std::string>([id](SpawnerClient& spawner) { return spawner.output(id); });
    if (!log) co_return Shown(log.error());
    co_return Shown(select_lines(*log, query));
}

Awaitable<Result<Inspection>> NativeRuntime::inspect(std::string id) {
    using Seen = Result<Inspection>;
    auto view =
        co_await look<std::string>([id](SpawnerClient& spawner) { return spawner.view(id); });
    if (!view) co_return Seen(view.error());
    auto seen = parse_view(*view);
    if (!seen || seen->usage.disk_bytes) co_return seen;
    // Without a file system of its own what it wrote has to be counted.
    const std::filesystem::path layer = layer_of_view(*view);
    std::function<std::uint64_t()> count = [layer] {
        return directory_usage(layer / "u", kMostCounted) +
               directory_usage(layer / "u2", kMostCounted);
    };
    if (!layer.empty()) {
        seen->usage.disk_bytes =
            co_await net::run_blocking<std::uint64_t>(*blocking_, std::move(count));
    }
    co_return seen;
}

/// The spawner says which sandbox is where; reading its counters is no work for it.
Awaitable<Result<std::vector<SandboxUsage>>> NativeRuntime::usage(std::size_t limit) {
    using Measured = Result<std::vector<SandboxUsage>>;
    if (limit == 0) co_return Measured(std::vector<SandboxUsage>());
    auto slots = co_await look<std::string>([limit](SpawnerClient& spawner) {
        return spawner.slots(static_cast<std::uint32_t>(limit));
    });
    if (!slots) co_return Measured(slots.error());
    std::function<Measured()> measure = [state = state_directory_, text = std::move(*slots)] {
        return Measured(measure_slots(state, text));
    };
    co_return co_await net::run_blocking<Measured>(*blocking_, std::move(measure));
}

}  // namespace

std::unique_ptr<Runtime> make_native_runtime(asio::any_io_executor executor,
                                             asio::thread_pool& blocking, image::Store& images,
                                             const NativeOptions& options) {
    return std::make_unique<NativeRuntime>(std::move(executor), blocking, images, options);
}

}  // namespace opensandbox::runtime::native
