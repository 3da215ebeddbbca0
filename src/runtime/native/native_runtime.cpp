#include "runtime/native/native_runtime.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/native/spawner_client.hpp"
#include "runtime/native/spawner_launch.hpp"

namespace opensandbox::runtime::native {

namespace {

using namespace std::chrono_literals;

SpawnerOptions spawner_options(const NativeOptions& options) {
    SpawnerOptions out;
    out.state_directory = options.state_directory;
    out.address_range = options.address_range;
    out.pool_size = options.pool_size;
    out.publish_host = options.publish_host;
    return out;
}

/// The image's variables, those of the request over them.
Environment merge(Environment base, const Environment& over) {
    for (const auto& [name, value] : over) {
        const auto found = std::ranges::find_if(
            base, [&](const auto& variable) { return variable.first == name; });
        if (found == base.end()) base.emplace_back(name, value);
        else found->second = value;
    }
    return base;
}

CreateRequest make_request(const SandboxSpec& spec, image::Rootfs& rootfs,
                           std::uint64_t default_pids) {
    CreateRequest request;
    request.id = spec.id;
    for (const auto& layer : rootfs.layers) request.layers.push_back(layer.string());
    request.usr = rootfs.usr.string();
    request.env = merge(std::move(rootfs.config.env), spec.env);
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
    NativeRuntime(asio::any_io_executor executor, asio::thread_pool& blocking,
                  image::Store& images, NativeOptions options)
        : executor_(std::move(executor)),
          blocking_(&blocking),
          images_(&images),
          options_(std::move(options)),
          alive_(std::make_shared<bool>(true)) {}

    ~NativeRuntime() override { *alive_ = false; }

    [[nodiscard]] std::string_view error_prefix() const override { return "NATIVE"; }
    [[nodiscard]] Figures figures() const override { return figures_; }
    void on_exit(std::function<void(const std::string&, const Exit&)> listener) override {
        listener_ = std::move(listener);
    }

    Awaitable<Status> start() override;
    Awaitable<Result<AgentAddress>> create(const SandboxSpec& spec) override;
    Awaitable<Status> destroy(const std::string& id) override;
    Awaitable<Result<std::vector<Observed>>> list() override;
    Awaitable<void> stop() override;

  private:
    Awaitable<Status> connect();
    Awaitable<Status> connect_or_launch();
    Awaitable<Status> await_connection();
    static Awaitable<void> reconnect(NativeRuntime* self, std::shared_ptr<bool> alive);
    SpawnerClient::Listeners listeners();
    void report_exit(const std::string& id, const Exit& exit);
    [[nodiscard]] bool connected() const { return client_ && client_->connected(); }

    asio::any_io_executor executor_;
    asio::thread_pool* blocking_;
    image::Store* images_;
    NativeOptions options_;
    std::shared_ptr<bool> alive_;
    std::shared_ptr<SpawnerClient> client_;  ///< shared with calls in flight
    std::function<void(const std::string&, const Exit&)> listener_;
    std::set<std::string> reported_;  ///< exits told, until destroyed
    Figures figures_;
    bool stopped_ = false;
};

SpawnerClient::Listeners NativeRuntime::listeners() {
    SpawnerClient::Listeners out;
    auto alive = alive_;
    out.on_exit = [this, alive](const std::string& id, const Exit& exit) {
        if (*alive) report_exit(id, exit);
    };
    out.on_figures = [this, alive](const Figures& figures) {
        if (*alive) figures_ = figures;
    };
    out.on_lost = [this, alive] {
        if (!*alive || stopped_) return;
        log::error("the spawner is gone; another is started");
        net::spawn(executor_, reconnect(this, alive), "reconnect to the spawner");
    };
    return out;
}

void NativeRuntime::report_exit(const std::string& id, const Exit& exit) {
    if (!reported_.insert(id).second) return;
    if (listener_) listener_(id, exit);
}

Awaitable<Status> NativeRuntime::connect() {
    const auto path = spawner_options(options_).socket_path();
    auto wanted = listeners();
    auto client = co_await SpawnerClient::connect(path, options_.pool_size, std::move(wanted));
    if (!client) co_return Status(client.error());
    client_ = std::move(*client);
    const HelloReply& spawner = client_->spawner();
    if (spawner.address_range != options_.address_range ||
        spawner.publish_host != options_.publish_host) {
        log::warn("the spawner that runs keeps its settings until its sandboxes are gone",
                  {{"address_range", spawner.address_range},
                   {"publish_host", spawner.publish_host}});
    }
    co_return Status();
}

Awaitable<Status> NativeRuntime::connect_or_launch() {
    auto status = co_await connect();
    if (status || status.error().code() == ErrorCode::conflict) co_return status;
    auto options = spawner_options(options_);
    auto executable = options_.executable;
    std::function<Status()> launch = [options, executable] {
        return launch_spawner(executable, options);
    };
    auto launched = co_await net::run_blocking<Status>(*blocking_, std::move(launch));
    if (!launched) co_return launched;
    co_return co_await connect();
}

Awaitable<Status> NativeRuntime::start() {
    if (!options_.state_directory.is_absolute()) {
        co_return Status(Error(ErrorCode::invalid_argument,
                               "native.state_dir: an absolute path is needed"));
    }
    co_return co_await connect_or_launch();
}

Awaitable<void> NativeRuntime::reconnect(NativeRuntime* self, std::shared_ptr<bool> alive) {
    auto delay = 50ms;
    while (*alive && !self->stopped_) {
        auto status = co_await self->connect_or_launch();
        if (!*alive) co_return;
        if (status) break;
        log::error("no spawner yet", {{"reason", status.error().message()}});
        co_await net::sleep_for(delay);
        delay = std::min<std::chrono::milliseconds>(delay * 2, 5s);
    }
    if (!*alive || self->stopped_ || !self->connected()) co_return;
    // What ended while nobody was connected.
    auto client = self->client_;
    auto observed = co_await client->list();
    if (!observed || !*alive) co_return;
    for (const Observed& item : *observed) {
        if (item.exit) self->report_exit(item.id, *item.exit);
    }
}

Awaitable<Status> NativeRuntime::await_connection() {
    for (int round = 0; round < 200 && !connected() && !stopped_; ++round) {
        co_await net::sleep_for(50ms);
    }
    if (connected()) co_return Status();
    co_return Status(Error(ErrorCode::unavailable, "the spawner is not reachable"));
}

Awaitable<Result<AgentAddress>> NativeRuntime::create(const SandboxSpec& spec) {
    using Created = Result<AgentAddress>;
    if (spec.entrypoint.empty()) {
        co_return Created(Error(ErrorCode::invalid_argument, "entrypoint: must not be empty"));
    }
    auto* images = images_;
    std::function<Result<image::Rootfs>()> resolve = [images, reference = spec.image] {
        return images->resolve(reference);
    };
    auto rootfs =
        co_await net::run_blocking<Result<image::Rootfs>>(*blocking_, std::move(resolve));
    if (!rootfs) {
        Error error = rootfs.error().within("image");
        if (error.code() == ErrorCode::not_found) {
            error = error.as("NATIVE::SANDBOX_IMAGE_PULL_FAILED");
        }
        co_return Created(std::move(error));
    }
    auto ready = co_await await_connection();
    if (!ready) co_return Created(ready.error());
    CreateRequest request = make_request(spec, *rootfs, options_.default_pids);
    auto client = client_;
    auto port = co_await client->create(std::move(request));
    if (!port) co_return Created(port.error());
    co_return Created(AgentAddress(client->spawner().publish_host, *port));
}

Awaitable<Status> NativeRuntime::destroy(const std::string& id) {
    const std::string name = id;
    auto ready = co_await await_connection();
    if (!ready) co_return ready;
    auto client = client_;
    auto status = co_await client->destroy(name);
    if (status) reported_.erase(name);
    co_return status;
}

Awaitable<Result<std::vector<Observed>>> NativeRuntime::list() {
    auto ready = co_await await_connection();
    if (!ready) co_return Result<std::vector<Observed>>(ready.error());
    auto client = client_;
    co_return co_await client->list();
}

Awaitable<void> NativeRuntime::stop() {
    stopped_ = true;
    if (client_) client_->close();
    co_return;
}

}  // namespace

std::unique_ptr<Runtime> make_native_runtime(asio::any_io_executor executor,
                                             asio::thread_pool& blocking, image::Store& images,
                                             NativeOptions options) {
    return std::make_unique<NativeRuntime>(std::move(executor), blocking, images,
                                           std::move(options));
}

}  // namespace opensandbox::runtime::native
