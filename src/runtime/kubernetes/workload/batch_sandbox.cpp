#include "runtime/kubernetes/workload/batch_sandbox.hpp"

#include "base/base64.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/workload/pod_template.hpp"
#include "runtime/kubernetes/workload/template_merge.hpp"

namespace opensandbox::runtime::kubernetes {
namespace {

constexpr std::string_view kShownExtension = "opensandbox.extensions.";

json::object labels_of(const SandboxSpec& spec) {
    json::object labels = json::string_object(spec.metadata);
    labels[label::kId] = spec.id;
    if (!spec.expires_at) labels[label::kManualCleanup] = "true";
    if (!spec.tenant.empty()) labels[label::kTenant] = spec.tenant;
    return labels;
}

json::object annotations_of(const SandboxSpec& spec, const WorkloadMarks& marks) {
    json::object annotations;
    const auto set = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) annotations[name] = value;
    };
    set(annotation::kEgressToken, marks.egress_token);
    set(annotation::kIdempotency, marks.idempotency);
    set(annotation::kInterception, interception_mode(spec));
    if (spec.renew_seconds) set(annotation::kRenewSeconds, std::to_string(*spec.renew_seconds));
    for (const auto& [name, value] : spec.extensions) {
        annotations[std::string(annotation::kExtensions) + name.substr(kShownExtension.size())] =
            value;
    }
    return annotations;
}

}  // namespace

json::object workload_metadata(const SandboxSpec& spec, const WorkloadMarks& marks) {
    json::object metadata{{"labels", labels_of(spec)}};
    if (auto annotations = annotations_of(spec, marks); !annotations.empty())
        metadata["annotations"] = std::move(annotations);
    return metadata;
}

json::object batch_sandbox_manifest(const SandboxSpec& spec, const KubernetesOptions& options,
                                    const WorkloadMarks& marks) {
    json::object of_pod = workload_metadata(spec, marks);
    json::object metadata = of_pod;
    metadata["name"] = spec.id;
    json::object pod;
    pod["metadata"] = std::move(of_pod);
    pod["spec"] = pod_spec(spec, options, marks.egress_token);
    json::object wanted{{"replicas", 1}};
    wanted["template"] = std::move(pod);
    if (spec.expires_at) wanted["expireTime"] = to_rfc3339(*spec.expires_at);
    json::object manifest{{"apiVersion", kube::api_version(kBatchSandboxes)},
                          {"kind", kBatchSandboxes.kind}};
    manifest["metadata"] = std::move(metadata);
    manifest["spec"] = std::move(wanted);
    json::object merged = merge_workload(options.manifest, manifest);
    // An expiry of the template's would end sandboxes that live until they are removed.
    if (!spec.expires_at) merged["spec"].as_object().erase("expireTime");
    return merged;
}

std::string registry_of(std::string_view reference) {
    const std::size_t slash = reference.find('/');
    const std::string_view first = reference.substr(0, slash);
    const bool named =
        slash != std::string_view::npos &&
        (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
    return named ? std::string(first) : "https://index.docker.io/v1/";
}

json::object image_secret_manifest(const SandboxSpec& spec, const kube::Owner& owner) {
    const std::string& user = spec.image_auth->username;
    const std::string& password = spec.image_auth->password;
    json::object login{
        {"username", user}, {"password", password}, {"auth", to_base64(user + ":" + password)}};
    json::object registries{{registry_of(spec.image), std::move(login)}};
    json::object content{{"auths", std::move(registries)}};
    json::object metadata{{"name", image_secret_name(spec.id)}};
    metadata["labels"] = json::object{{label::kId, spec.id}};
    metadata["ownerReferences"] = json::array{kube::write_owner(owner)};
    json::object secret{
        {"apiVersion", "v1"}, {"kind", "Secret"}, {"type", "kubernetes.io/dockerconfigjson"}};
    secret["metadata"] = std::move(metadata);
    secret["stringData"] = json::object{{".dockerconfigjson", json::serialize(content)}};
    return secret;
}

}  // namespace opensandbox::runtime::kubernetes
