#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "net/task.hpp"
#include "runtime/agent_greeting.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"

namespace opensandbox::runtime::docker {
namespace {

/// Attempts with other ports when the engine finds one taken (lifecycle 6.4).
constexpr int kPortAttempts = 3;
constexpr std::chrono::seconds kAgentLimit{60};
constexpr std::uint32_t kLinesOfLog = 20;
/// How our agent begins the line that says why it gave up (agent.cpp).
constexpr std::string_view kAgentGaveUp = "agent cannot start";

Error invalid(const std::string& message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", message};
}

/// Whether the engine may have done what it did not confirm.
bool is_doubtful(const Error& error) {
    return error.code() == ErrorCode::timeout || error.code() == ErrorCode::unavailable ||
           error.code() == ErrorCode::bad_gateway || error.code() == ErrorCode::cancelled;
}

bool same_platform(const ImageInfo& image, const model::Platform& wanted) {
    return image.os == wanted.os && image.architecture == wanted.arch;
}

void log_progress(const std::string& sandbox, const std::string& image,
                  const PullProgress& progress) {
    bool step = progress.status.starts_with("Pull complete") ||
                progress.status.starts_with("Pulling from") ||
                progress.status.starts_with("Status:") || progress.status.starts_with("Digest:");
    log::write(step ? log::Level::info : log::Level::debug, "pulling",
               {{"sandbox", sandbox},
                {"image", image},
                {"layer", progress.id},
                {"status", progress.status},
                {"bytes", progress.current_bytes},
                {"of", progress.total_bytes}});
}

}  // namespace

Awaitable<Result<Endpoints>> DockerRuntime::create(SandboxSpec asked) {
    auto began = std::chrono::steady_clock::now();
    Creation creation(std::move(asked));
    const SandboxSpec& spec = creation.spec;
    known_[spec.id].creating = true;
    auto made = co_await make(creation);
    if (!made) {
        Error why = made.error();
        co_await undo(creation, why);
        co_return why;
    }
    if (Known* entry = known(spec.id)) {
        entry->creating = false;
        entry->interception_mode = runtime::interception_mode(spec);
    }
    auto took = std::chrono::steady_clock::now() - began;
    log::debug(
        "container created",
        {{"sandbox", spec.id},
         {"milliseconds", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}});
    co_return made;
}

std::string DockerRuntime::image_digest(const std::string& id) const {
    const auto found = known_.find(id);
    return found == known_.end() ? std::string() : found->second.image_digest;
}

std::string DockerRuntime::interception_mode(const std::string& id) const {
    const auto found = known_.find(id);
    return found == known_.end() ? std::string() : found->second.interception_mode;
}

/// The steps in the contract's order (lifecycle 2.1).
Awaitable<Result<Endpoints>> DockerRuntime::make(Creation& creation) {
    SandboxSpec& spec = creation.spec;
    if (spec.platform && spec.platform->os != "linux") {
        co_return invalid("platform.os: '" + spec.platform->os +
                          "' is not supported by this server.");
    }
    auto policy = check_policy(spec);
    if (!policy) co_return policy.error();
    auto network = co_await check_network();
    if (!network) co_return network.error();
    auto planned = co_await plan_volumes(engine_, blocking_, options_.allowed_host_paths,
                                         spec.volumes, creation.volumes);
    if (!planned) co_return planned.error();
    auto image = co_await provide_image(creation);
    if (!image) co_return image.error();
    creation.image = std::move(*image);
    auto inherited = inherit_policy(creation.image, spec);
    if (!inherited) co_return inherited.error();
    auto buckets = co_await mount_buckets(buckets_, spec.volumes, creation.volumes);
    if (Known* entry = known(spec.id)) {
        entry->managed_volumes = creation.volumes.managed;
        entry->bucket_mounts = creation.volumes.bucket_mounts;
        if (!spec.snapshot) entry->image_digest = manifest_digest(creation.image.repo_digests);
    }
    if (!buckets) co_return buckets.error();

    auto volume = co_await agent_.ensure(creation.image.id);
    if (!volume) {
        co_return failure("SANDBOX_EXECD_DISTRIBUTION_FAILED",
                          "staging the agent: " + volume.error().message());
    }
    ContainerPlan& plan = creation.plan;
    plan.image = spec.snapshot ? spec.snapshot->data : spec.image;
    plan.agent_volume = *volume;
    plan.foreign_agent = agent_.foreign();
    plan.network_mode = options_.network_mode;
    plan.binds = creation.volumes.binds;
    plan.facts.server_id = server_id_;
    plan.facts.managed_volumes = creation.volumes.managed;
    plan.facts.bucket_mounts = creation.volumes.bucket_mounts;
    plan.facts.image_labels = creation.image.labels;
    auto container = co_await make_container(creation);
    if (!container) co_return container.error();
    co_return co_await greet(creation);
}

Awaitable<Status> DockerRuntime::check_network() {
    const std::string& mode = options_.network_mode;
    if (mode == "host" || mode == "bridge") co_return Status();
    auto network = co_await engine_.inspect_network(mode);
    if (network) co_return Status();
    if (network.error().code() == ErrorCode::not_found) {
        co_return invalid("docker.network_mode: the Docker engine has no network '" + mode + "'.");
    }
    co_return failure("SANDBOX_START_FAILED", network.error().message());
}

/// The local copy when it has the right platform, else a pull (lifecycle 6.2).
Awaitable<Result<ImageInfo>> DockerRuntime::provide_image(Creation& creation) {
    const SandboxSpec& spec = creation.spec;
    constexpr std::string_view kCode = "SANDBOX_IMAGE_PULL_FAILED";
    std::string name = spec.snapshot ? spec.snapshot->data : spec.image;
    model::Platform wanted(version_.os, version_.architecture);
    if (spec.platform) wanted = *spec.platform;
    auto local = co_await engine_.inspect_image(name);
    if (!local && local.error().code() != ErrorCode::not_found) {
        co_return failure(kCode, local.error().message());
    }
    if (local && (spec.snapshot || same_platform(*local, wanted))) co_return local;
    if (spec.snapshot) {
        co_return failure(kCode, "the image of snapshot " + spec.snapshot->id +
                                     " is gone: " + local.error().message());
    }
    PullRequest pull(name);
    if (spec.platform || local) pull.platform = wanted.os + "/" + wanted.arch;
    if (spec.image_auth) {
        pull.auth = RegistryAuth(spec.image_auth->username, spec.image_auth->password);
    }
    pull.on_progress = [id = spec.id, name](const PullProgress& progress) {
        log_progress(id, name, progress);
    };
    auto pulled = co_await engine_.pull_image(std::move(pull));
    if (!pulled) co_return failure(kCode, "pull of '" + name + "': " + pulled.error().message());
    local = co_await engine_.inspect_image(name);
    if (!local) co_return failure(kCode, local.error().message());
    co_return local;
}

Awaitable<Status> DockerRuntime::take_ports(Creation& creation, std::size_t count) {
    auto reserved = ports_.reserve(count);
    if (!reserved) co_return failure("SANDBOX_START_FAILED", reserved.error().message());
    creation.ports = std::move(*reserved);
    creation.plan.facts.agent_port = creation.ports.ports[0];
    creation.plan.facts.http_port = creation.ports.ports[1];
    co_return Status();
}

Awaitable<Status> DockerRuntime::make_container(Creation& creation) {
    const SandboxSpec& spec = creation.spec;
    if (spec.network_policy) {
        auto sidecar = co_await start_sidecar(creation);
        if (!sidecar) co_return sidecar;
    }
    bool own_ports = !spec.network_policy && options_.network_mode != "host";
    bool restaged = false;
    for (int attempt = 1;; ++attempt) {
        if (own_ports) {
            auto taken = co_await take_ports(creation, 2);
            if (!taken) co_return taken;
        }
        auto started = co_await try_container(creation);
        if (started) co_return started;
        Error why = started.error();
        bool again = own_ports && is_port_conflict(why) && attempt < kPortAttempts;
        // Somebody may have removed the agent's volume; the engine then mounts an empty one.
        bool agent_missing = !restaged && why.message().find("bootstrap.sh") != std::string::npos;
        if (!again && !agent_missing) {
            if (why.code() == ErrorCode::invalid_argument) co_return invalid(why.message());
            co_return failure("SANDBOX_START_FAILED", why.message());
        }
        auto removed = co_await engine_.remove_container(container_name(spec.id), true, true);
        if (!removed) co_return failure("SANDBOX_START_FAILED", removed.error().message());
        if (!agent_missing) continue;
        restaged = true;
        agent_.doubt();
        auto volume = co_await agent_.ensure(creation.image.id);
        if (!volume) {
            co_return failure("SANDBOX_EXECD_DISTRIBUTION_FAILED", volume.error().message());
        }
    }
}

Awaitable<Status> DockerRuntime::try_container(Creation& creation) {
    const SandboxSpec& spec = creation.spec;
    std::string platform;
    if (spec.platform && !spec.snapshot) platform = spec.platform->os + "/" + spec.platform->arch;
    json::object body = container_body(spec, options_, creation.plan);
    std::string name = container_name(spec.id);
    auto made = co_await engine_.create_container(name, std::move(body), platform);
    if (!made) co_return made.error();
    for (const std::string& warning : made->warnings)
        log::warn("engine", {{"sandbox", spec.id}, {"warning", warning}});
    if (Known* entry = known(spec.id)) {
        entry->container = made->id;
        entry->state = Known::State::running;
    }
    co_return co_await engine_.start_container(made->id);
}

/// Waits until a command works.
Awaitable<Result<Endpoints>> DockerRuntime::greet(Creation& creation) {
    const SandboxSpec& spec = creation.spec;
    auto info = co_await engine_.inspect_container(container_of(spec.id));
    if (!info) co_return failure("SANDBOX_START_FAILED", info.error().message());
    const ContainerFacts& facts = creation.plan.facts;
    Endpoints reached = endpoints(facts.agent_port, facts.http_port,
                                  internal_host(info->networks, info->ip_address));
    guard(reached, facts.egress_token, facts.egress_port);
    std::vector<AgentAddress> addresses{reached.agent};
    if (!reached.internal_host.empty()) addresses.emplace_back(reached.internal_host, kAgentPort);
    std::string id = spec.id;
    std::function<bool()> ended = [this, id] {
        const Known* entry = known(id);
        return !entry || entry->state == Known::State::ended || entry->cut_off;
    };
    auto greeting = co_await await_agent(probes_, std::move(addresses), spec.agent_token,
                                         std::move(ended), kAgentLimit);
    switch (greeting) {
        case Greeting::ready: break;
        case Greeting::stranger:
            co_return failure("SANDBOX_START_FAILED",
                              "another agent answers at " + reached.agent.host + ":" +
                                  std::to_string(reached.agent.port) +
                                  "; with docker.network_mode = \"host\" there can be one only");
        case Greeting::timed_out:
            co_return failure("SANDBOX_START_FAILED",
                              "the agent did not answer at " + reached.agent.host + ":" +
                                  std::to_string(reached.agent.port) + " within " +
                                  std::to_string(kAgentLimit.count()) + " s");
        case Greeting::ended: {
            const Known* entry = known(spec.id);
            if (entry && entry->cut_off) {
                std::string why = co_await why_sidecar_ended(spec.id);
                co_return failure("SANDBOX_START_FAILED", "egress sidecar: " + why);
            }
            auto explained = co_await explain_end(spec.id);
            if (!explained) co_return explained.error();
            break;  // the entrypoint has done its work already
        }
    }
    co_return reached;
}

/// Fails when a container ended because its agent or entrypoint could not start.
Awaitable<Status> DockerRuntime::explain_end(std::string id) {
    LogRequest request(container_of(id));
    request.tail = kLinesOfLog;
    request.tty = false;
    auto output = co_await engine_.container_logs(std::move(request));
    if (!output) co_return failure("SANDBOX_START_FAILED", output.error().message());
    const std::string& text = output->text;
    std::size_t at = text.find(kAgentGaveUp);
    if (at == std::string::npos) co_return Status();
    std::size_t begin = text.rfind('\n', at) + 1;
    std::string line = text.substr(begin, text.find('\n', at) - begin);
    if (auto document = json::parse(line); document && document->is_object()) {
        auto reason = json::get_string(document->get_object(), "error");
        if (reason && *reason) line = **reason;
    }
    co_return failure("SANDBOX_START_FAILED", "start of the entrypoint: " + line);
}

Awaitable<void> DockerRuntime::undo(Creation& creation, Error why) {
    const std::string& id = creation.spec.id;
    Known remains;
    if (const Known* entry = known(id)) remains = *entry;
    remains.managed_volumes = creation.volumes.made;
    remains.bucket_mounts = creation.volumes.bucket_mounts;
    if (Known* entry = known(id)) entry->destroying = true;
    auto removed = co_await remove_objects(id, remains);
    known_.erase(id);
    bool doubtful = is_doubtful(why) || why.message().find("the Docker engine at") == 0;
    if (!removed || doubtful) leave_remains(id, remains);
    if (!removed) {
        log::error("cannot undo a create yet",
                   {{"sandbox", id}, {"error", removed.error().message()}});
    }
}

}  // namespace opensandbox::runtime::docker
