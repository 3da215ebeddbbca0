#include "runtime/native/native_runtime.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/native/freezer.hpp"
#include "runtime/native/journal.hpp"
#include "runtime/native/kernel.hpp"
#include "runtime/native/snapshot_files.hpp"
#include "runtime/native/spawner_link.hpp"
#include "runtime/native/spawner_options.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

namespace {

/// The image's variables, those of the request over them.
Environment merge(Environment base, const Environment& over) {
    for (const auto& [name, value] : over) {
        const auto found = std::ranges::find_if(
            base, [&](const auto& variable) { return variable.first == name; });
        if (found == base.end())
            base.emplace_back(name, value);
        else
            found->second = value;
    }
    return base;
}

/// What the agent and the programs inside learn of their sandbox (execd 11): where set-env keeps
/// its file, which sandbox this is, and its limits, since control groups cannot be seen from
/// inside.
Environment sandbox_environment(const SandboxSpec& spec) {
    Environment known{{"EXECD_ENVS", "/opt/opensandbox/.env"}, {"OPENSANDBOX_ID", spec.id}};
    if (spec.limits.memory_bytes != 0) {
        known.emplace_back("OPENSANDBOX_MEMORY_LIMIT_BYTES",
                           std::to_string(spec.limits.memory_bytes));
    }
    if (spec.limits.cpu_cores > 0) {
        known.emplace_back("OPENSANDBOX_CPU_LIMIT", std::to_string(spec.limits.cpu_cores));
    }
    return known;
}

/// What a sandbox starts from.
struct Base {
    ImageOrigin image;
    std::vector<std::string> snapshot_layers;
};

Result<ImageOrigin> resolve_image(image::Store& images, const std::string& reference) {
    auto rootfs = images.resolve(reference);
    if (!rootfs) return rootfs.error();
    ImageOrigin origin;
    origin.reference = reference;
    origin.digest = rootfs->digest;
    for (const auto& layer : rootfs->layers)
        origin.layers.push_back(layer.string());
    origin.usr = rootfs->usr.string();
    origin.config = std::move(rootfs->config);
    return origin;
}

Result<Base> resolve_base(image::Store& images, const SnapshotFiles& snapshots,
                          const std::string& reference, const std::string& snapshot) {
    Base base;
    if (snapshot.empty()) {
        auto origin = resolve_image(images, reference);
        if (!origin) {
            Error error = origin.error().within("image");
            if (error.code() == ErrorCode::not_found) {
                error = error.as("NATIVE::SANDBOX_IMAGE_PULL_FAILED");
            }
            return error;
        }
        base.image = std::move(*origin);
        return base;
    }
    auto record = snapshots.read(snapshot);
    if (!record) return record.error();
    base.snapshot_layers = std::move(record->layers);
    base.image = std::move(record->image);
    if (base.image.usr.empty()) return base;
    // The host's image changes with the host; only the present one is kept over a restart of it.
    auto origin = resolve_image(images, base.image.reference);
    if (!origin) return origin.error().within("image below the snapshot");
    base.image = std::move(*origin);
    return base;
}

/// Whether a snapshot, or a sandbox whose spawner wrote it down, stands on this image.
bool image_needed(const std::filesystem::path& state_directory, const std::string& digest) {
    auto records = SnapshotFiles(state_directory).read_all();
    if (records && std::ranges::any_of(*records, [&](const SnapshotRecord& record) {
            return record.image.digest == digest;
        })) {
        return true;
    }
    std::error_code error;
    for (const auto& file :
         std::filesystem::directory_iterator(journal_directory(state_directory), error)) {
        auto entry = parse_entry(read_file_or_empty(file.path()));
        if (entry && entry->digest == digest) return true;
    }
    return false;
}

CreateRequest make_request(const SandboxSpec& spec, Base& base, std::uint64_t default_pids) {
    image::ImageConfig& config = base.image.config;
    CreateRequest request;
    request.id = spec.id;
    request.image = std::move(base.image.reference);
    request.digest = std::move(base.image.digest);
    request.layers = std::move(base.image.layers);
    request.usr = std::move(base.image.usr);
    request.image_env = config.env;
    request.snapshot_layers = std::move(base.snapshot_layers);
    request.env = merge(merge(std::move(config.env), sandbox_environment(spec)), spec.env);
    request.entrypoint = spec.entrypoint;
    request.working_directory = std::move(config.working_directory);
    request.user = std::move(config.user);
    request.limits = spec.limits;
    if (request.limits.pids == 0) request.limits.pids = default_pids;
    request.agent_token = spec.agent_token;
    request.hostname = spec.id.substr(0, 8);
    return request;
}

class NativeRuntime final : public Runtime {
  public:
    NativeRuntime(asio::any_io_executor executor, asio::thread_pool& blocking, image::Store& images,
                  NativeOptions options)
        : blocking_(&blocking),
          images_(&images),
          default_pids_(options.default_pids),
          snapshots_(options.state_directory),
          can_freeze_(
              Freezer::available(find_hierarchies(read_file_or_empty("/proc/self/mounts")))),
          link_(std::make_shared<SpawnerLink>(std::move(executor), blocking, options)) {
        images.protect([state = options.state_directory](const std::string& digest) {
            return image_needed(state, digest);
        });
    }

    ~NativeRuntime() override { link_->stop(); }

    [[nodiscard]] std::string_view error_prefix() const override { return "NATIVE"; }
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
        return link_->start();
    }
    Awaitable<Result<Endpoints>> create(const SandboxSpec& spec) override;
    Awaitable<Status> destroy(const std::string& id) override;
    Awaitable<Result<std::vector<Observed>>> list() override;
    [[nodiscard]] Capabilities capabilities() const override {
        Capabilities capabilities;
        capabilities.pause = can_freeze_;
        capabilities.snapshots = can_freeze_;
        return capabilities;
    }
    Awaitable<Status> pause(const std::string& id) override;
    Awaitable<Status> resume(const std::string& id) override;
    Awaitable<Result<SnapshotReference>> snapshot(const std::string& sandbox_id,
                                                  const std::string& snapshot_id) override;
    Awaitable<Status> remove_snapshot(const SnapshotReference& snapshot) override;
    Awaitable<Result<std::vector<SnapshotReference>>> list_snapshots() override;
    Awaitable<void> stop() override {
        link_->stop();
        co_return;
    }

  private:
    asio::thread_pool* blocking_;
    image::Store* images_;
    std::uint64_t default_pids_;
    SnapshotFiles snapshots_;
    bool can_freeze_;
    std::shared_ptr<SpawnerLink> link_;
};

Awaitable<Result<Endpoints>> NativeRuntime::create(const SandboxSpec& spec) {
    using Created = Result<Endpoints>;
    if (spec.entrypoint.empty()) {
        co_return Created(Error(ErrorCode::invalid_argument, "entrypoint: must not be empty"));
    }
    std::function<Result<Base>()> resolve = [images = images_, files = snapshots_,
                                             reference = spec.image,
                                             snapshot = spec.snapshot ? spec.snapshot->id : ""] {
        return resolve_base(*images, files, reference, snapshot);
    };
    auto base = co_await net::run_blocking<Result<Base>>(*blocking_, std::move(resolve));
    if (!base) co_return Created(base.error());
    CreateRequest request = make_request(spec, *base, default_pids_);
    auto client = co_await link_->client();
    if (!client) co_return Created(client.error());
    auto port = co_await (*client)->create(std::move(request));
    if (!port) co_return Created(port.error());
    co_return Created(AgentAddress((*client)->spawner().publish_host, *port));
}

Awaitable<Status> NativeRuntime::destroy(const std::string& id) {
    const std::string name = id;
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    auto status = co_await (*client)->destroy(name);
    if (status) link_->forget(name);
    co_return status;
}

Awaitable<Result<std::vector<Observed>>> NativeRuntime::list() {
    auto client = co_await link_->client();
    if (!client) co_return Result<std::vector<Observed>>(client.error());
    co_return co_await (*client)->list();
}

Awaitable<Status> NativeRuntime::pause(const std::string& id) {
    const std::string name = id;
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    co_return co_await (*client)->pause(name);
}

Awaitable<Status> NativeRuntime::resume(const std::string& id) {
    const std::string name = id;
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    co_return co_await (*client)->resume(name);
}

Awaitable<Result<SnapshotReference>> NativeRuntime::snapshot(const std::string& sandbox_id,
                                                             const std::string& snapshot_id) {
    using Taken = Result<SnapshotReference>;
    const std::string sandbox = sandbox_id;
    const std::string name = snapshot_id;
    SnapshotReference reference(name, name);
    auto client = co_await link_->client();
    if (!client) co_return Taken(client.error());
    auto status = co_await (*client)->snapshot(sandbox, name);
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

Awaitable<Status> NativeRuntime::remove_snapshot(const SnapshotReference& snapshot) {
    const std::string name = snapshot.id;
    auto client = co_await link_->client();
    if (!client) co_return Status(client.error());
    co_return co_await (*client)->remove_snapshot(name);
}

Awaitable<Result<std::vector<SnapshotReference>>> NativeRuntime::list_snapshots() {
    using Listed = Result<std::vector<SnapshotReference>>;
    std::function<Listed()> read = [files = snapshots_]() -> Listed {
        auto records = files.read_all();
        if (!records) return records.error();
        std::vector<SnapshotReference> out;
        for (const SnapshotRecord& record : *records)
            out.emplace_back(record.id, record.id);
        return out;
    };
    co_return co_await net::run_blocking<Listed>(*blocking_, std::move(read));
}

}  // namespace

std::unique_ptr<Runtime> make_native_runtime(asio::any_io_executor executor,
                                             asio::thread_pool& blocking, image::Store& images,
                                             NativeOptions options) {
    return std::make_unique<NativeRuntime>(std::move(executor), blocking, images,
                                           std::move(options));
}

}  // namespace opensandbox::runtime::native
