#include "base/identifier.hpp"
#include "base/log.hpp"
#include "runtime/agent_greeting.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/sidecar_spec.hpp"

namespace opensandbox::runtime::docker {
namespace {

constexpr std::chrono::milliseconds kHealthStep{20};
constexpr std::size_t kPublished = 3;
constexpr std::uint32_t kLinesOfSidecarLog = 20;

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

/// Returns when the sidecar guards the network that the sandbox is going to join; without it no
/// sandbox is started.
Awaitable<Status> DockerRuntime::start_sidecar(Creation& creation) {
    const SandboxSpec& spec = creation.spec;
    auto image = co_await sidecar_image_.ensure(version_.architecture);
    if (!image) co_return failure("SANDBOX_START_FAILED", image.error().message());
    auto taken = co_await take_ports(creation, kPublished);
    if (!taken) co_return taken;
    SidecarPlan sidecar;
    sidecar.server_id = server_id_;
    sidecar.image = std::move(*image);
    sidecar.token = new_token();
    sidecar.agent_port = creation.ports.ports[0];
    sidecar.http_port = creation.ports.ports[1];
    sidecar.egress_port = creation.ports.ports[2];
    if (Known* entry = known(spec.id)) entry->sidecar = entry->runtime_volume = true;

    VolumeRequest volume(runtime_volume_name(spec.id));
    volume.labels.emplace_back(std::string(label::kServer), server_id_);
    auto made = co_await engine_.create_volume(std::move(volume));
    if (!made) co_return failure("SANDBOX_START_FAILED", made.error().message());
    auto container = co_await run_sidecar(creation, sidecar);
    if (!container && options_.egress.disable_ipv6) {
        // Some engines refuse the settings that turn IPv6 off.
        log::warn("starting the egress sidecar once more without sysctls",
                  {{"sandbox", spec.id}, {"error", container.error().message()}});
        sidecar.sysctls = false;
        auto removed = co_await engine_.remove_container(sidecar_name(spec.id), true, true);
        if (removed) container = co_await run_sidecar(creation, sidecar);
    }
    if (!container) {
        co_return failure("SANDBOX_START_FAILED", "egress sidecar: " + container.error().message());
    }
    auto healthy = co_await await_sidecar(spec.id, sidecar);
    if (!healthy) co_return healthy;
    creation.plan.network_mode = "container:" + *container;
    creation.plan.runtime_volume = true;
    creation.plan.transparent_egress = is_transparent(spec);
    creation.plan.facts.egress_token = sidecar.token;
    creation.plan.facts.egress_port = sidecar.egress_port;
    co_return Status();
}

Awaitable<Status> DockerRuntime::await_sidecar(std::string id, SidecarPlan sidecar) {
    AgentAddress address(proxy_host(), sidecar.egress_port);
    http::Fields fields{{"OPENSANDBOX-EGRESS-AUTH", std::move(sidecar.token)}};
    std::function<bool()> ended = [this, id] {
        const Known* entry = known(id);
        return !entry || entry->cut_off;
    };
    bool healthy = co_await await_success(probes_, address, "/healthz", std::move(fields), ended,
                                          kHealthStep, options_.egress.readiness_timeout);
    if (healthy) co_return Status();
    std::string why =
        "not healthy within " + std::to_string(options_.egress.readiness_timeout.count()) + " s";
    if (ended()) why = co_await why_sidecar_ended(id);
    co_return failure("SANDBOX_START_FAILED", "egress sidecar: " + why);
}

/// The container's id.
Awaitable<Result<std::string>> DockerRuntime::run_sidecar(Creation& creation, SidecarPlan sidecar) {
    const SandboxSpec& spec = creation.spec;
    json::object body = sidecar_body(spec, options_, sidecar);
    auto made = co_await engine_.create_container(sidecar_name(spec.id), std::move(body));
    if (!made) co_return made.error();
    if (Known* entry = known(spec.id)) entry->sidecar_container = made->id;
    auto started = co_await engine_.start_container(made->id);
    if (!started) co_return started.error();
    co_return made->id;
}

/// What its last line of output says.
Awaitable<std::string> DockerRuntime::why_sidecar_ended(std::string sandbox) {
    LogRequest request(sidecar_name(sandbox));
    request.tail = kLinesOfSidecarLog;
    request.tty = false;
    auto output = co_await engine_.container_logs(std::move(request));
    std::string line = output ? output->text : std::string();
    while (line.ends_with('\n'))
        line.pop_back();
    line.erase(0, line.rfind('\n') + 1);
    if (auto document = json::parse(line); document && document->is_object()) {
        auto reason = json::get_string(document->get_object(), "error");
        if (reason && *reason) line = **reason;
    }
    co_return "it ended" + (line.empty() ? std::string() : ": " + line);
}

void DockerRuntime::handle_sidecar(const std::string& id, const EngineEvent& event) {
    Known* entry = known(id);
    if (event.action != "die" || !entry || entry->destroying) return;
    if (event.attribute("name").value_or("") != sidecar_name(id)) return;
    const std::string& made = entry->sidecar_container;
    if (!made.empty() && made != event.actor_id) return;
    if (entry->creating) {
        entry->cut_off = true;
    } else {
        spawn(cut_off(id), "end a sandbox without its sidecar");
    }
}

/// A sidecar's container took the network with it: the engine unplugs it, and a container that is
/// started again gets another. What runs in the sandbox can reach nothing and be reached by
/// nobody, for good.
Awaitable<void> DockerRuntime::cut_off(std::string id) {
    Known* entry = known(id);
    if (!entry || entry->destroying || entry->cut_off) co_return;
    entry->cut_off = true;
    if (entry->state == Known::State::ended) co_return;
    std::string why = co_await why_sidecar_ended(id);
    log::error("a sandbox lost its egress sidecar and is ended",
               {{"sandbox", id}, {"sidecar", why}});
    std::string container = container_of(id);
    auto killed = co_await engine_.kill_container(container);
    if (!killed && killed.error().code() == ErrorCode::conflict) {
        // A paused one cannot be killed.
        auto resumed = co_await engine_.unpause_container(container);
        if (resumed) killed = co_await engine_.kill_container(container);
    }
    if (killed || killed.error().code() == ErrorCode::not_found) co_return;
    log::error("cannot end a sandbox without its sidecar",
               {{"sandbox", id}, {"error", killed.error().message()}});
}

/// Whether the sandbox's sidecar runs, and has since before the sandbox: one that was started again
/// guards another network.
Awaitable<Result<bool>> DockerRuntime::is_guarded(std::string id, std::string container) {
    auto sidecar = co_await engine_.inspect_container(sidecar_name(id));
    if (!sidecar && sidecar.error().code() == ErrorCode::not_found) co_return false;
    if (!sidecar) co_return sidecar.error();
    if (!sidecar->state.running) co_return false;
    auto main = co_await engine_.inspect_container(std::move(container));
    if (!main && main.error().code() == ErrorCode::not_found) co_return true;
    if (!main) co_return main.error();
    bool known_times = sidecar->state.started_at && main->state.started_at;
    co_return !known_times || *sidecar->state.started_at <= *main->state.started_at;
}

}  // namespace opensandbox::runtime::docker
