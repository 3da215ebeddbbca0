#include "runtime/native/server/spawner_link.hpp"

#include "base/log.hpp"
#include "net/task.hpp"

#include <algorithm>
#include <chrono>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

SpawnerOptions spawner_options(const NativeOptions& options) {
    SpawnerOptions out;
    out.state_directory = options.state_directory;
    out.address_range = options.address_range;
    out.address_range6 = options.address_range6;
    out.pool_size = options.pool.size;
    out.publish_host = options.publish_host;
    out.layer_bytes = options.defaults.disk_bytes;
    out.runsc = options.runsc;
    out.rootless = options.rootless;
    return out;
}

std::string list_of(const std::vector<std::string>& phrases) {
    std::string out;
    for (const std::string& phrase : phrases)
        out += (out.empty() ? "" : "; ") + phrase;
    return out;
}

Error stopped() {
    return {ErrorCode::cancelled, "the runtime was stopped"};
}

}  // namespace

SpawnerClient::Listeners SpawnerLink::listeners() {
    SpawnerClient::Listeners out;
    const std::weak_ptr<SpawnerLink> weak = weak_from_this();
    out.on_exit = [weak](const std::string& id, const Exit& exit) {
        if (const auto self = weak.lock()) self->report_exit(id, exit);
    };
    out.on_figures = [weak](const Figures& figures) {
        if (const auto self = weak.lock()) self->figures_ = figures;
    };
    out.on_lost = [weak] {
        const auto self = weak.lock();
        if (!self || self->stopped_) return;
        log::error("the spawner is gone; another is started");
        self->figures_ = {};
        net::spawn(self->executor_, reconnect(self), "reconnect to the spawner");
    };
    return out;
}

void SpawnerLink::report_exit(const std::string& id, const Exit& exit) {
    if (stopped_ || !reported_.insert(id).second) return;
    if (listener_) listener_(id, exit);
}

void SpawnerLink::keep_warm(std::vector<CreateRequest> images) {
    warm_ = std::move(images);
    if (client_ && client_->connected()) client_->keep_warm(warm_);
}

void SpawnerLink::stop() {
    stopped_ = true;
    listener_ = nullptr;
    if (client_) client_->close();
}

Awaitable<Status> SpawnerLink::connect(std::shared_ptr<SpawnerLink> self) {
    const auto path = spawner_options(self->options_).socket_path();
    auto wanted = self->listeners();
    auto client = co_await SpawnerClient::connect(path, self->options_.pool, self->options_.egress,
                                                  std::move(wanted));
    if (!client) co_return Status(client.error());
    if (self->stopped_) co_return Status(stopped());
    // What shall guard new sandboxes is no setting that could wait.
    if ((*client)->spawner().runsc != self->options_.runsc) {
        (*client)->close();
        co_return Status(Error(ErrorCode::conflict, "the spawner has another secure_runtime"));
    }
    self->client_ = std::move(*client);
    if (!self->warm_.empty()) self->client_->keep_warm(self->warm_);
    const HelloReply& spawner = self->client_->spawner();
    if (spawner.address_range != self->options_.address_range ||
        spawner.address_range6 != self->options_.address_range6 ||
        spawner.publish_host != self->options_.publish_host) {
        log::warn("the spawner that runs keeps its settings until it ends",
                  {{"address_range", spawner.address_range},
                   {"address_range6", spawner.address_range6},
                   {"publish_host", spawner.publish_host}});
    }
    if (!spawner.off.empty()) {
        log::warn("this host lacks something; `opensandbox doctor` tells more",
                  {{"off", list_of(spawner.off)}});
    }
    co_return Status();
}

Awaitable<Status> SpawnerLink::connect_or_launch(std::shared_ptr<SpawnerLink> self) {
    auto status = co_await connect(self);
    if (status || self->stopped_) co_return status;
    auto options = spawner_options(self->options_);
    if (status.error().code() == ErrorCode::conflict) {
        log::info(
            "a spawner of another version, or with another secure_runtime, runs: it is replaced, "
            "and its sandboxes live on");
        std::function<Status()> retire = [path = options.socket_path()] {
            return retire_spawner(path);
        };
        auto retired = co_await net::run_blocking<Status>(*self->blocking_, std::move(retire));
        if (!retired) co_return retired;
        if (self->stopped_) co_return Status(stopped());
    }
    auto executable = self->options_.executable;
    std::function<Status()> launch = [options, executable] {
        return launch_spawner(executable, options);
    };
    auto launched = co_await net::run_blocking<Status>(*self->blocking_, std::move(launch));
    if (!launched) co_return launched;
    if (self->stopped_) co_return Status(stopped());
    co_return co_await connect(self);
}

Awaitable<Status> SpawnerLink::start() {
    if (!options_.state_directory.is_absolute()) {
        co_return Status(
            Error(ErrorCode::invalid_argument, "native.state_dir: an absolute path is needed"));
    }
    co_return co_await connect_or_launch(shared_from_this());
}

Awaitable<void> SpawnerLink::reconnect(std::shared_ptr<SpawnerLink> self) {
    std::chrono::milliseconds delay = 50ms;
    while (!self->stopped_) {
        auto status = co_await connect_or_launch(self);
        if (status) break;
        if (self->stopped_) co_return;
        log::error("no spawner yet", {{"reason", status.error().message()}});
        co_await net::sleep_for(delay);
        delay = std::min<std::chrono::milliseconds>(delay * 2, 5s);
    }
    if (self->stopped_) co_return;
    // What ended while nobody was connected.
    auto client = self->client_;
    auto observed = co_await client->list();
    if (!observed) co_return;
    for (const Observed& item : *observed) {
        if (item.exit) self->report_exit(item.id, *item.exit);
    }
}

Awaitable<Result<std::shared_ptr<SpawnerClient>>> SpawnerLink::client() {
    using Found = Result<std::shared_ptr<SpawnerClient>>;
    auto self = shared_from_this();
    for (int round = 0; round < 200 && !self->stopped_; ++round) {
        if (self->client_ && self->client_->connected()) co_return Found(self->client_);
        co_await net::sleep_for(50ms);
    }
    co_return Found(Error(ErrorCode::unavailable, "the spawner is not reachable"));
}

}  // namespace opensandbox::runtime::native
