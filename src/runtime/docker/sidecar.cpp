#include "base/identifier.hpp"
#include "base/log.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/readiness.hpp"
#include "runtime/docker/sidecar_spec.hpp"

namespace opensandbox::runtime::docker {
namespace {

constexpr std::chrono::milliseconds kHealthStep{20};
constexpr std::size_t kPublished = 3;

}  // namespace

Status DockerRuntime::check_policy(const SandboxSpec& spec) const {
    if (!spec.network_policy && !spec.egress_env.empty()) {
        log::warn("settings of an egress sidecar without networkPolicy: dropped",
                  {{"sandbox", spec.id}});
    }
    if (spec.network_policy && spec.credential_proxy &&
        spec.network_policy->default_action.value_or("") != "deny") {
        log::warn("credentialProxy with a policy that does not deny by default",
                  {{"sandbox", spec.id}});
    }
    return check_network_policy(spec, options_);
}

/// The image of the sidecar, pulled when it is missing.
Awaitable<Status> DockerRuntime::provide_sidecar_image() {
    auto image = co_await engine_.inspect_image(options_.egress_image);
    if (image) co_return Status();
    if (image.error().code() != ErrorCode::not_found) co_return image.error();
    PullRequest pull(options_.egress_image);
    auto pulled = co_await engine_.pull_image(std::move(pull));
    if (!pulled) co_return pulled.error().within("egress.image");
    co_return Status();
}

/// Returns when the sidecar guards the network that the sandbox is going to join; without it no
/// sandbox is started.
Awaitable<Status> DockerRuntime::start_sidecar(const SandboxSpec& spec, Creation& creation) {
    auto ready = co_await provide_sidecar_image();
    if (!ready) co_return failure("SANDBOX_START_FAILED", ready.error().message());
    auto taken = co_await take_ports(creation, kPublished);
    if (!taken) co_return taken;
    SidecarPlan sidecar;
    sidecar.server_id = server_id_;
    sidecar.token = new_token();
    sidecar.agent_port = creation.ports.ports[0];
    sidecar.http_port = creation.ports.ports[1];
    sidecar.egress_port = creation.ports.ports[2];
    if (Known* entry = known(spec.id)) entry->sidecar = entry->runtime_volume = true;

    VolumeRequest volume(runtime_volume_name(spec.id));
    volume.labels.emplace_back(std::string(label::kServer), server_id_);
    auto made = co_await engine_.create_volume(std::move(volume));
    if (!made) co_return failure("SANDBOX_START_FAILED", made.error().message());
    auto container = co_await run_sidecar(spec, sidecar);
    if (!container && options_.egress_disable_ipv6) {
        // Some engines refuse the settings that turn IPv6 off.
        log::warn("starting the egress sidecar once more without sysctls",
                  {{"sandbox", spec.id}, {"error", container.error().message()}});
        sidecar.sysctls = false;
        auto removed = co_await engine_.remove_container(sidecar_name(spec.id), true, true);
        if (removed) container = co_await run_sidecar(spec, sidecar);
    }
    if (!container) {
        co_return failure("SANDBOX_START_FAILED", "egress sidecar: " + container.error().message());
    }
    AgentAddress address(proxy_host(), sidecar.egress_port);
    http::Fields fields{{"OPENSANDBOX-EGRESS-AUTH", sidecar.token}};
    bool healthy = co_await await_success(probes_, address, "/healthz", std::move(fields),
                                          kHealthStep, options_.egress_readiness_timeout);
    if (!healthy) {
        co_return failure("SANDBOX_START_FAILED",
                          "egress sidecar: not healthy within " +
                              std::to_string(options_.egress_readiness_timeout.count()) + " s");
    }
    creation.plan.network_mode = "container:" + *container;
    creation.plan.runtime_volume = true;
    creation.plan.transparent_egress = is_transparent(spec);
    creation.plan.facts.egress_token = sidecar.token;
    co_return Status();
}

/// The container's id.
Awaitable<Result<std::string>> DockerRuntime::run_sidecar(const SandboxSpec& spec,
                                                          const SidecarPlan& sidecar) {
    json::object body = sidecar_body(spec, options_, sidecar);
    auto made = co_await engine_.create_container(sidecar_name(spec.id), std::move(body));
    if (!made) co_return made.error();
    auto started = co_await engine_.start_container(made->id);
    if (!started) co_return started.error();
    co_return made->id;
}

}  // namespace opensandbox::runtime::docker
