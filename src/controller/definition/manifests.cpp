#include "controller/definition/manifests.hpp"

#include "controller/definition/custom_resources.hpp"
#include "controller/definition/permissions.hpp"

#include <initializer_list>
#include <string_view>

namespace opensandbox::controller {
namespace {

constexpr std::string_view kController = "opensandbox-controller-manager";
constexpr std::string_view kServer = "opensandbox-server";
constexpr int kProbePort = 8081;
constexpr int kServerPort = 8080;
constexpr int kUser = 65532;
constexpr int kControllerGrace = 10;

json::object meta(std::string_view name, std::string_view name_space = {}) {
    json::object metadata{{"name", name}};
    if (!name_space.empty()) metadata["namespace"] = name_space;
    metadata["labels"] = json::object{{"app.kubernetes.io/name", "opensandbox"},
                                      {"app.kubernetes.io/component", name}};
    return metadata;
}

json::object document(std::string_view api, std::string_view kind, json::object metadata) {
    json::object made{{"apiVersion", api}, {"kind", kind}};
    made["metadata"] = std::move(metadata);
    return made;
}

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kRbacVersion = "rbac.authorization.k8s.io/v1";

json::object role(std::string_view kind, json::object metadata, json::array rules) {
    json::object made = document(kRbacVersion, kind, std::move(metadata));
    made["rules"] = std::move(rules);
    return made;
}

json::object binding(std::string_view kind, json::object metadata, std::string_view of,
                     std::string_view account, const std::string& name_space) {
    json::object made = document(kRbacVersion, kind, metadata);
    made["roleRef"] = json::object{{"apiGroup", kRbac}, {"kind", of}, {"name", metadata["name"]}};
    json::object subject{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", name_space}};
    json::array subjects;
    subjects.emplace_back(std::move(subject));
    made["subjects"] = std::move(subjects);
    return made;
}

json::object probe(std::string_view path, std::string_view port, int delay, int period) {
    json::object made{{"initialDelaySeconds", delay}, {"periodSeconds", period}};
    made["httpGet"] = json::object{{"path", path}, {"port", port}};
    return made;
}

/// Not root, nothing to write to, no rights to gain.
json::object confined(json::object container) {
    json::object capabilities;
    capabilities["drop"] = json::array{"ALL"};
    json::object context{{"allowPrivilegeEscalation", false},
                         {"readOnlyRootFilesystem", true},
                         {"runAsNonRoot", true},
                         {"runAsUser", kUser}};
    context["capabilities"] = std::move(capabilities);
    container["securityContext"] = std::move(context);
    return container;
}

json::object port(std::string_view name, int number) {
    return {{"name", name}, {"containerPort", number}};
}

struct Part {
    std::string_view name;
    int replicas = 1;
    int grace_seconds = 30;
    json::object container;
    json::array volumes;
};

json::object deployment(Part part, const std::string& name_space) {
    json::object labels{{"app.kubernetes.io/component", part.name}};
    json::object pod{{"serviceAccountName", part.name},
                     {"terminationGracePeriodSeconds", part.grace_seconds}};
    json::object profile{{"type", "RuntimeDefault"}};
    json::object context{{"runAsNonRoot", true}, {"fsGroup", kUser}};
    context["seccompProfile"] = std::move(profile);
    pod["securityContext"] = std::move(context);
    json::array containers;
    containers.emplace_back(confined(std::move(part.container)));
    pod["containers"] = std::move(containers);
    if (!part.volumes.empty()) pod["volumes"] = std::move(part.volumes);
    json::object of_pod;
    of_pod["metadata"] = json::object{{"labels", labels}};
    of_pod["spec"] = std::move(pod);
    json::object spec{{"replicas", part.replicas}};
    spec["selector"] = json::object{{"matchLabels", labels}};
    spec["template"] = std::move(of_pod);
    json::object made = document("apps/v1", "Deployment", meta(part.name, name_space));
    made["spec"] = std::move(spec);
    return made;
}

json::object disruption_budget(std::string_view name, const std::string& name_space) {
    json::object labels{{"app.kubernetes.io/component", name}};
    json::object spec{{"maxUnavailable", 1}};
    spec["selector"] = json::object{{"matchLabels", std::move(labels)}};
    json::object made = document("policy/v1", "PodDisruptionBudget", meta(name, name_space));
    made["spec"] = std::move(spec);
    return made;
}

json::object resources(std::string_view cpu, std::string_view memory, std::string_view most) {
    json::object made;
    made["requests"] = json::object{{"cpu", cpu}, {"memory", memory}};
    made["limits"] = json::object{{"memory", most}};
    return made;
}

Part controller_part(const ManifestSettings& settings) {
    Part part{.name = kController, .replicas = 2, .grace_seconds = kControllerGrace};
    json::object& container = part.container;
    container = {{"name", "manager"}, {"image", settings.image}};
    container["args"] = json::array{"controller", "--leader-elect",
                                    "--health-probe-bind-address=:" + std::to_string(kProbePort)};
    container["ports"] = json::array{port("probes", kProbePort)};
    container["livenessProbe"] = probe("/healthz", "probes", 15, 20);
    container["readinessProbe"] = probe("/readyz", "probes", 5, 10);
    container["resources"] = resources("10m", "64Mi", "512Mi");
    return part;
}

json::object server_config(const ManifestSettings& settings) {
    const std::string text =
        "[server]\nhost = \"0.0.0.0\"\nport = " + std::to_string(kServerPort) +
        "\n\n[runtime]\ntype = \"kubernetes\"\n\n[kubernetes]\nnamespace = \"" +
        settings.sandboxes + "\"\nimage = \"" + settings.image + "\"\n";
    json::object made =
        document("v1", "ConfigMap", meta("opensandbox-server-config", settings.name_space));
    made["data"] = json::object{{"config.toml", text}};
    return made;
}

Part server_part(const ManifestSettings& settings) {
    Part part{.name = kServer, .replicas = 2};
    json::object& container = part.container;
    container = {{"name", "main"}, {"image", settings.image}};
    container["args"] = json::array{"serve", "--config=/etc/opensandbox/config.toml",
                                    "--state-dir=/var/lib/opensandbox"};
    json::object key{{"name", "opensandbox-server-key"}, {"key", "api-key"}};
    json::object from;
    from["secretKeyRef"] = std::move(key);
    json::object variable{{"name", "OPENSANDBOX_SERVER_API_KEY"}};
    variable["valueFrom"] = std::move(from);
    json::array env;
    env.emplace_back(std::move(variable));
    container["env"] = std::move(env);
    container["ports"] = json::array{port("http", kServerPort)};
    container["livenessProbe"] = probe("/health", "http", 15, 20);
    container["readinessProbe"] = probe("/health", "http", 1, 5);
    container["resources"] = resources("100m", "128Mi", "1Gi");
    container["volumeMounts"] =
        json::array{json::object{{"name", "config"}, {"mountPath", "/etc/opensandbox"}},
                    json::object{{"name", "state"}, {"mountPath", "/var/lib/opensandbox"}}};
    json::object config{{"name", "config"}};
    config["configMap"] = json::object{{"name", "opensandbox-server-config"}};
    json::object state{{"name", "state"}};
    state["emptyDir"] = json::object();
    part.volumes = json::array{std::move(config), std::move(state)};
    return part;
}

json::object service(const ManifestSettings& settings) {
    json::object entry{{"name", "http"}, {"port", 80}, {"targetPort", "http"}};
    json::object spec;
    spec["selector"] = json::object{{"app.kubernetes.io/component", kServer}};
    json::array ports;
    ports.emplace_back(std::move(entry));
    spec["ports"] = std::move(ports);
    json::object made = document("v1", "Service", meta(kServer, settings.name_space));
    made["spec"] = std::move(spec);
    return made;
}

void add_yaml_text(std::string& out, std::string_view text) {
    out += json::serialize(json::value(text));
}

void add_yaml(std::string& out, const json::value& value, std::size_t indent);

void add_member(std::string& out, std::string_view name, const json::value& value,
                std::size_t indent) {
    out += name;
    out += ':';
    const bool block = (value.is_object() && !value.get_object().empty()) ||
                       (value.is_array() && !value.get_array().empty());
    if (!block) {
        out += ' ';
        add_yaml(out, value, indent);
        return;
    }
    out += '\n';
    add_yaml(out, value, indent + (value.is_object() ? 2 : 0));
}

void add_object(std::string& out, const json::object& object, std::size_t indent,
                bool first_in_place) {
    for (const auto& [name, value] : object) {
        if (!first_in_place) out.append(indent, ' ');
        first_in_place = false;
        add_member(out, name, value, indent);
    }
}

void add_yaml(std::string& out, const json::value& value, std::size_t indent) {
    if (value.is_object() && !value.get_object().empty()) {
        add_object(out, value.get_object(), indent, false);
        return;
    }
    if (value.is_array() && !value.get_array().empty()) {
        for (const json::value& item : value.get_array()) {
            out.append(indent, ' ').append("- ");
            if (item.is_object() && !item.get_object().empty()) {
                add_object(out, item.get_object(), indent + 2, true);
            } else {
                add_yaml(out, item, indent + 2);
            }
        }
        return;
    }
    if (value.is_string()) {
        add_yaml_text(out, value.get_string());
    } else {
        out += json::serialize(value);
    }
    out += '\n';
}

}  // namespace

json::array manifests(const ManifestSettings& settings) {
    json::array all = custom_resources();
    if (settings.definitions_only) return all;
    const std::string& home = settings.name_space;
    all.emplace_back(document("v1", "Namespace", meta(home)));
    all.emplace_back(document("v1", "Namespace", meta(settings.sandboxes)));
    for (const std::string_view account : {kController, kServer})
        all.emplace_back(document("v1", "ServiceAccount", meta(account, home)));
    all.emplace_back(role("ClusterRole", meta(kController), controller_rules()));
    all.emplace_back(
        binding("ClusterRoleBinding", meta(kController), "ClusterRole", kController, home));
    all.emplace_back(role("Role", meta(kController, home), election_rules()));
    all.emplace_back(binding("RoleBinding", meta(kController, home), "Role", kController, home));
    all.emplace_back(role("ClusterRole", meta(kServer), server_rules()));
    all.emplace_back(binding("ClusterRoleBinding", meta(kServer), "ClusterRole", kServer, home));
    all.emplace_back(server_config(settings));
    all.emplace_back(deployment(controller_part(settings), home));
    all.emplace_back(disruption_budget(kController, home));
    all.emplace_back(deployment(server_part(settings), home));
    all.emplace_back(disruption_budget(kServer, home));
    all.emplace_back(service(settings));
    return all;
}

std::string to_yaml(const json::array& documents) {
    std::string out;
    for (const json::value& made : documents) {
        out += "---\n";
        add_yaml(out, made, 0);
    }
    return out;
}

}  // namespace opensandbox::controller
