#include "runtime/kubernetes/expansion.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/workload/batch_sandbox.hpp"
#include "runtime/kubernetes/workload/pod_template.hpp"
#include "runtime/kubernetes/workload/template_merge.hpp"
#include "runtime/kubernetes/workload/volumes.hpp"
#include "unit/runtime/kubernetes/objects.hpp"

using namespace opensandbox;
using namespace opensandbox::runtime::kubernetes;
using test_support::yaml_object;

namespace {

runtime::SandboxSpec plain() {
    runtime::SandboxSpec spec;
    spec.id = "0b3a";
    spec.image = "debian:12";
    spec.entrypoint = {"tail", "-f", "/dev/null"};
    spec.env = {{"A", "1"}};
    spec.agent_token = "secret";
    spec.limits.cpu_cores = 0.5;
    spec.limits.memory_bytes = 256ULL << 20;
    return spec;
}

KubernetesOptions ours() {
    KubernetesOptions options;
    options.image = "opensandbox:1";
    return options;
}

const json::value& at(const json::value& from, std::string_view pointer) {
    boost::system::error_code missing;
    const json::value* found = from.find_pointer(pointer, missing);
    INFO(pointer);
    REQUIRE(found);
    return *found;
}

std::string text(const json::value& from, std::string_view pointer) {
    return std::string(at(from, pointer).as_string());
}

std::string variable(const json::value& container, std::string_view name) {
    for (const json::value& entry : at(container, "/env").as_array()) {
        if (text(entry, "/name") == name) return text(entry, "/value");
    }
    return "(none)";
}

std::string refusal(const runtime::SandboxSpec& spec, const KubernetesOptions& options = ours()) {
    const Status checked = check_workload(spec, options);
    return checked ? std::string() : checked.error().message();
}

}  // namespace

TEST_CASE("workload: a sandbox is one replica with the agent before it") {
    const json::value manifest = batch_sandbox_manifest(plain(), ours(), {});
    CHECK(text(manifest, "/metadata/name") == "0b3a");
    CHECK(text(manifest, "/metadata/labels/opensandbox.io~1id") == "0b3a");
    CHECK(text(manifest, "/metadata/labels/opensandbox.io~1manual-cleanup") == "true");
    CHECK(at(manifest, "/spec/replicas") == 1);
    CHECK_FALSE(manifest.at("spec").as_object().contains("expireTime"));
    CHECK_FALSE(manifest.at("spec").as_object().contains("pause"));
    const json::value& pod = at(manifest, "/spec/template/spec");
    CHECK(at(pod, "/automountServiceAccountToken") == false);
    CHECK(text(pod, "/initContainers/0/args/0") == "install-agent");
    CHECK(text(pod, "/initContainers/0/image") == "opensandbox:1");
    const json::value& container = at(pod, "/containers/0");
    CHECK(text(container, "/name") == "sandbox");
    CHECK(text(container, "/command/0") == "/opt/opensandbox/bootstrap.sh");
    CHECK(text(container, "/command/1") == "tail");
    CHECK(text(container, "/resources/limits/cpu") == "500m");
    CHECK(text(container, "/resources/limits/memory") == "256Mi");
    CHECK(text(container, "/resources/requests/cpu") == "500m");
    CHECK(variable(container, "A") == "1");
    CHECK(variable(container, "EXECD_ACCESS_TOKEN") == "secret");
    CHECK(variable(container, "OPENSANDBOX_ID") == "0b3a");
    CHECK(variable(container, "OPENSANDBOX_MEMORY_LIMIT_BYTES") == "268435456");
}

TEST_CASE("workload: a published agent's image is copied from as it is") {
    KubernetesOptions options = ours();
    options.execd_image = "execd:1";
    const json::value pod = pod_spec(plain(), options, "");
    CHECK(text(pod, "/initContainers/0/image") == "execd:1");
    CHECK(text(pod, "/initContainers/0/command/0") == "/bin/sh");
    CHECK(text(pod, "/initContainers/0/command/2").find("cp ./bootstrap.sh /opt/opensandbox/") !=
          std::string::npos);
    CHECK(variable(at(pod, "/containers/0"), "OPENSANDBOX_MEMORY_LIMIT_BYTES") == "(none)");
}

TEST_CASE("workload: a policy is a sidecar that is up first, and rights that the sandbox lacks") {
    runtime::SandboxSpec spec = plain();
    spec.network_policy.emplace();
    spec.network_policy->default_action = "deny";
    const json::value manifest = batch_sandbox_manifest(spec, ours(), {.egress_token = "t"});
    CHECK(text(manifest, "/metadata/annotations/opensandbox.io~1egress-auth-token") == "t");
    const json::value& pod = at(manifest, "/spec/template/spec");
    const json::value& sidecar = at(pod, "/initContainers/1");
    CHECK(text(sidecar, "/name") == "egress");
    CHECK(text(sidecar, "/restartPolicy") == "Always");
    CHECK(text(sidecar, "/securityContext/capabilities/add/0") == "NET_ADMIN");
    CHECK(text(sidecar, "/startupProbe/httpGet/path") == "/healthz");
    CHECK(variable(sidecar, "OPENSANDBOX_EGRESS_TOKEN") == "t");
    CHECK(variable(sidecar, "OPENSANDBOX_EGRESS_MODE") == "dns+nft");
    CHECK(at(pod, "/containers/0/securityContext/capabilities/drop").as_array().size() == 2);
}

TEST_CASE("workload: what was asked for is shown where the contract wants it") {
    runtime::SandboxSpec spec = plain();
    spec.tenant = "team";
    spec.metadata = {{"a", "b"}};
    spec.extensions = {{"opensandbox.extensions.note", "n"}};
    spec.renew_seconds = 300;
    spec.expires_at = test_support::at("2030-01-01T00:00:00Z");
    spec.platform = model::Platform("linux", "arm64");
    spec.hooks.emplace();
    spec.isolation = true;
    spec.image_auth = model::RegistryLogin("u", "p");
    KubernetesOptions options = ours();
    options.runtime_class = "gvisor";
    const json::value manifest = batch_sandbox_manifest(spec, options, {.idempotency = "key"});
    CHECK(text(manifest, "/spec/expireTime") == "2030-01-01T00:00:00Z");
    CHECK(text(manifest, "/metadata/labels/a") == "b");
    CHECK(text(manifest, "/metadata/labels/opensandbox.io~1tenant") == "team");
    CHECK(text(manifest, "/metadata/annotations/opensandbox.io~1extensions.note") == "n");
    CHECK(text(manifest, "/metadata/annotations/opensandbox.io~1access-renew-extend-seconds") ==
          "300");
    CHECK(text(manifest, "/metadata/annotations/opensandbox.io~1idempotency") == "key");
    CHECK(text(manifest, "/spec/template/metadata/labels/a") == "b");
    const json::value& pod = at(manifest, "/spec/template/spec");
    CHECK(text(pod, "/runtimeClassName") == "gvisor");
    CHECK(text(pod, "/nodeSelector/kubernetes.io~1arch") == "arm64");
    CHECK(text(pod, "/imagePullSecrets/0/name") == "opensandbox-image-auth-0b3a");
    CHECK(variable(at(pod, "/containers/0"), "OPENSANDBOX_LIFECYCLE") != "(none)");
    CHECK(text(pod, "/containers/0/securityContext/capabilities/add/0") == "SYS_ADMIN");
}

TEST_CASE("workload: the kubelet's expansion changes nothing") {
    for (const char* plain_text : {"$(HOME)", "$$(HOME)", "a$b$$c", "$", "$$", "$(", "", "$$$"}) {
        INFO(plain_text);
        CHECK(expanded(without_expansion(plain_text)) == plain_text);
    }
    CHECK(without_expansion("cost: $5") == "cost: $5");
    CHECK(without_expansion("$(HOME)") == "$$(HOME)");
}

TEST_CASE("workload: what a pod cannot be is refused by its field") {
    runtime::SandboxSpec spec = plain();
    CHECK(refusal(spec).empty());
    spec.limits.gpus = -1;
    CHECK(refusal(spec).find("resourceLimits.gpu") != std::string::npos);
    spec.limits.gpus = 2;
    spec.limits.disk_bytes = 1ULL << 30;
    CHECK(refusal(spec).empty());
    spec.limits.pids = 100;
    CHECK(refusal(spec).find("resourceLimits.pids") != std::string::npos);
    spec = plain();
    spec.platform = model::Platform("windows", "amd64");
    CHECK(refusal(spec).find("platform.os") != std::string::npos);
    spec = plain();
    spec.resource_requests = {{"cpu", "much"}};
    CHECK(refusal(spec).find("resourceRequests.cpu") != std::string::npos);
    spec = plain();
    spec.network_policy.emplace();
    spec.network_policy->egress.emplace_back("allow", "http://x/");
    CHECK(refusal(spec).find("networkPolicy.egress[0].target") != std::string::npos);
}

TEST_CASE("workload: requests are what was asked for beside the limits") {
    runtime::SandboxSpec spec = plain();
    spec.resource_requests = {{"cpu", "100m"}, {"memory", "64Mi"}};
    const json::value pod = pod_spec(spec, ours(), "");
    CHECK(text(pod, "/containers/0/resources/requests/cpu") == "100m");
    CHECK(text(pod, "/containers/0/resources/requests/memory") == "64Mi");
    CHECK(text(pod, "/containers/0/resources/limits/cpu") == "500m");
}

TEST_CASE("workload: mounts of one claim are one volume") {
    runtime::SandboxSpec spec = plain();
    const auto claim = [](std::string name, bool read_only) {
        model::Volume volume;
        volume.name = std::move(name);
        volume.mount_path = "/" + volume.name;
        volume.read_only = read_only;
        volume.backend = model::ClaimVolume("data");
        return volume;
    };
    spec.volumes = {claim("one", true), claim("two", false)};
    CHECK(refusal(spec).empty());
    json::array volumes = pod_volumes(spec);
    REQUIRE(volumes.size() == 1);
    CHECK_FALSE(at(volumes[0], "/persistentVolumeClaim").as_object().contains("readOnly"));
    CHECK(pod_mounts(spec).size() == 2);
    CHECK(text(pod_mounts(spec)[1], "/name") == "one");
    spec.volumes[1].read_only = true;
    CHECK(at(pod_volumes(spec)[0], "/persistentVolumeClaim/readOnly") == true);
    const auto wanted = wanted_claims(spec, ours());
    REQUIRE(wanted.size() == 1);
    CHECK(text(wanted[0].manifest, "/spec/resources/requests/storage") == "1Gi");
    CHECK(text(wanted[0].manifest, "/spec/accessModes/0") == "ReadWriteOnce");
    std::get<model::ClaimVolume>(spec.volumes[1].backend).storage = "5Gi";
    CHECK(refusal(spec).find("volumes.two") != std::string::npos);
    spec.volumes = {claim("opensandbox-bin", false)};
    CHECK(refusal(spec).find("volumes.opensandbox-bin") != std::string::npos);
}

TEST_CASE("workload: host paths are those that the operator allows") {
    runtime::SandboxSpec spec = plain();
    model::Volume volume;
    volume.name = "v";
    volume.mount_path = "/v";
    volume.backend = model::HostVolume("/srv/data");
    spec.volumes = {volume};
    CHECK(refusal(spec).find("v") != std::string::npos);
    KubernetesOptions options = ours();
    options.allowed_host_paths = {"/srv"};
    CHECK(refusal(spec, options).empty());
    CHECK(text(pod_volumes(spec)[0], "/hostPath/type") == "DirectoryOrCreate");
}

TEST_CASE("workload: a template lies below the manifest") {
    const json::object under = yaml_object(R"(
metadata: {annotations: {operator: here}, labels: {opensandbox.io/id: wrong}}
spec:
  expireTime: "2001-01-01T00:00:00Z"
  replicas: 9
  template:
    spec:
      restartPolicy: null
      tolerations: [{operator: Exists}]
      containers:
      - name: other
      - name: sandbox
        volumeMounts: [{name: extra, mountPath: /extra}, {name: x, mountPath: /opt/opensandbox}]
        securityContext: {privileged: false, capabilities: {drop: [ALL]}}
      volumes: [{name: extra, emptyDir: {}}, {name: opensandbox-bin, hostPath: {path: /}}]
)");
    KubernetesOptions options = ours();
    options.manifest = under;
    runtime::SandboxSpec spec = plain();
    spec.network_policy.emplace();
    const json::value manifest = batch_sandbox_manifest(spec, options, {});
    CHECK(text(manifest, "/metadata/labels/opensandbox.io~1id") == "0b3a");
    CHECK(text(manifest, "/metadata/annotations/operator") == "here");
    CHECK(at(manifest, "/spec/replicas") == 1);
    CHECK_FALSE(manifest.at("spec").as_object().contains("expireTime"));
    const json::value& pod = at(manifest, "/spec/template/spec");
    CHECK(text(pod, "/tolerations/0/operator") == "Exists");
    CHECK(text(pod, "/restartPolicy") == "Never");
    CHECK(at(pod, "/containers").as_array().size() == 1);
    CHECK(at(pod, "/volumes").as_array().size() == 2);
    CHECK(at(pod, "/volumes/0/emptyDir").as_object().empty());
    CHECK(at(pod, "/containers/0/volumeMounts").as_array().size() == 2);
    CHECK(text(pod, "/containers/0/volumeMounts/1/mountPath") == "/extra");
    CHECK(at(pod, "/containers/0/securityContext/privileged") == false);
    // What the manifest says of a leaf wins: the sandbox may not get back what it must not have.
    CHECK(text(pod, "/containers/0/securityContext/capabilities/drop/0") == "NET_ADMIN");
}

TEST_CASE("workload: the registry of a login") {
    CHECK(registry_of("debian:12") == "https://index.docker.io/v1/");
    CHECK(registry_of("team/debian") == "https://index.docker.io/v1/");
    CHECK(registry_of("ghcr.io/a/b:1") == "ghcr.io");
    CHECK(registry_of("localhost:5000/a") == "localhost:5000");
    CHECK(registry_of("localhost/a") == "localhost");
    runtime::SandboxSpec spec = plain();
    spec.image = "ghcr.io/a/b:1";
    spec.image_auth = model::RegistryLogin("u", "p\"");
    const json::value secret = image_secret_manifest(spec, kube::Owner("v", "K", "n", "uid"));
    const auto content = json::parse(text(secret, "/stringData/.dockerconfigjson"));
    REQUIRE(content);
    CHECK(text(*content, "/auths/ghcr.io/password") == "p\"");
    CHECK(text(secret, "/metadata/ownerReferences/0/uid") == "uid");
}
