#include "runtime/native/native_runtime.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/native/spawner_link.hpp"

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

CreateRequest make_request(const SandboxSpec& spec, image::Rootfs& rootfs,
                           std::uint64_t default_pids) {
    CreateRequest request;
    request.id = spec.id;
    for (const auto& layer : rootfs.layers)
        request.layers.push_back(layer.string());
    request.usr = rootfs.usr.string();
    request.env = merge(merge(std::move(rootfs.config.env), sandbox_environment(spec)), spec.env);
    request.entrypoint = spec.entrypoint;
    request.working_directory = rootfs.config.working_directory;
    request.user = rootfs.config.user;
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
          link_(std::make_shared<SpawnerLink>(std::move(executor), blocking, std::move(options))) {}

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
    Awaitable<void> stop() override {
        link_->stop();
        co_return;
    }

  private:
    asio::thread_pool* blocking_;
    image::Store* images_;
    std::uint64_t default_pids_;
    std::shared_ptr<SpawnerLink> link_;
};

Awaitable<Result<Endpoints>> NativeRuntime::create(const SandboxSpec& spec) {
    using Created = Result<Endpoints>;
    if (spec.entrypoint.empty()) {
        co_return Created(Error(ErrorCode::invalid_argument, "entrypoint: must not be empty"));
    }
    auto* images = images_;
    std::function<Result<image::Rootfs>()> resolve = [images, reference = spec.image] {
        return images->resolve(reference);
    };
    auto rootfs = co_await net::run_blocking<Result<image::Rootfs>>(*blocking_, std::move(resolve));
    if (!rootfs) {
        Error error = rootfs.error().within("image");
        if (error.code() == ErrorCode::not_found) {
            error = error.as("NATIVE::SANDBOX_IMAGE_PULL_FAILED");
        }
        co_return Created(std::move(error));
    }
    CreateRequest request = make_request(spec, *rootfs, default_pids_);
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

}  // namespace

std::unique_ptr<Runtime> make_native_runtime(asio::any_io_executor executor,
                                             asio::thread_pool& blocking, image::Store& images,
                                             NativeOptions options) {
    return std::make_unique<NativeRuntime>(std::move(executor), blocking, images,
                                           std::move(options));
}

}  // namespace opensandbox::runtime::native
