#include "runtime/docker/sidecar_spec.hpp"

#include "runtime/docker/names.hpp"
#include "runtime/docker/remembered_egress.hpp"

namespace opensandbox::runtime::docker {
namespace {

Error invalid_setting(const std::string& message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", message};
}

}  // namespace

Status check_network_policy(const SandboxSpec& spec, const DockerOptions& options) {
    if (!spec.network_policy) return {};
    if (options.network_mode != "bridge") {
        return invalid_setting("networkPolicy: needs docker.network_mode = \"bridge\"; it is '" +
                               options.network_mode + "'.");
    }
    if (options.secure_runtime == "gvisor") {
        return invalid_setting("networkPolicy: not supported with gVisor.");
    }
    return check_sidecar(spec, options.egress);
}

json::object sidecar_body(const SandboxSpec& spec, const DockerOptions& options,
                          const SidecarPlan& plan) {
    json::object labels;
    labels[label::kSidecarFor] = spec.id;
    labels[label::kServer] = plan.server_id;
    labels[label::kEgressRequest] = describe_egress(spec);

    json::object exposed;
    json::object bindings;
    auto publish = [&](std::uint16_t inside, std::uint16_t outside) {
        std::string key = std::to_string(inside) + "/tcp";
        exposed[key] = json::object();
        bindings[key] = json::array{
            json::object{{"HostIp", options.publish_host}, {"HostPort", std::to_string(outside)}}};
    };
    publish(kAgentPort, plan.agent_port);
    publish(kHttpPort, plan.http_port);
    publish(kEgressPort, plan.egress_port);

    json::object mount;
    mount["Type"] = "volume";
    mount["Source"] = runtime_volume_name(spec.id);
    mount["Target"] = kRuntimeDirectory;
    mount["VolumeOptions"] = json::object{{"NoCopy", true}};

    json::object host;
    host["NetworkMode"] = "bridge";
    host["CapAdd"] = json::array{"NET_ADMIN"};
    if (options.egress.image.empty()) {
        // Ours needs no more than that.
        host["CapDrop"] = json::array{"ALL"};
        host["SecurityOpt"] = json::array{"no-new-privileges=true"};
    }
    host["PortBindings"] = std::move(bindings);
    host["Mounts"] = json::array{std::move(mount)};
    if (!options.egress.upstream_proxy_ca_cert_path.empty()) {
        host["Binds"] = json::array{options.egress.upstream_proxy_ca_cert_path + ":" +
                                    std::string(kUpstreamCaFile) + ":ro"};
    }
    if (options.egress.disable_ipv6 && plan.sysctls) {
        json::object sysctls;
        for (std::string_view scope : {"all", "default", "lo"})
            sysctls["net.ipv6.conf." + std::string(scope) + ".disable_ipv6"] = "1";
        host["Sysctls"] = std::move(sysctls);
    }

    json::object body;
    body["Image"] = plan.image;
    json::array env;
    for (const auto& [name, value] : sidecar_environment(spec, options.egress, plan.token))
        env.emplace_back(name + "=" + value);
    body["Env"] = std::move(env);
    body["Labels"] = std::move(labels);
    body["ExposedPorts"] = std::move(exposed);
    body["HostConfig"] = std::move(host);
    return body;
}

}  // namespace opensandbox::runtime::docker
