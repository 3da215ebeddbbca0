#include "controller/plan/pod_document.hpp"

#include "kube/object/strategic_merge.hpp"
#include "runtime/kubernetes/names.hpp"

#include <charconv>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace label = kubernetes::label;

/// Of what a template must not say: it is the object's own.
constexpr std::string_view kOwnMembers[] = {"name", "generateName",    "namespace",
                                            "uid",  "resourceVersion", "creationTimestamp"};

std::int64_t number_of(std::string_view text) {
    std::int64_t number = -1;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    return problem == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace

std::string pod_name(const kube::Metadata& batch, std::int64_t index) {
    return batch.name + "-" + std::to_string(index);
}

std::int64_t pod_index(const kube::Metadata& pod) {
    const auto at = pod.labels.find(std::string(label::kPodIndex));
    if (at != pod.labels.end()) return number_of(at->second);
    return number_of(std::string_view(pod.name).substr(pod.name.rfind('-') + 1));
}

Result<json::object> pod_document(const kubernetes::BatchSandbox& batch, std::int64_t index) {
    const json::object* from = batch.pod_template.if_object();
    if (!from) return invalid("spec.template: must be a pod template");
    json::object pod{{"apiVersion", "v1"}, {"kind", "Pod"}};
    const json::value* given = json::find(*from, "metadata");
    if (given && !given->is_object()) return invalid("spec.template.metadata: must be an object");
    json::object metadata = given ? given->get_object() : json::object();
    for (const std::string_view member : kOwnMembers)
        metadata.erase(member);
    const json::value* spec = json::find(*from, "spec");
    if (!spec || !spec->is_object()) return invalid("spec.template.spec: must be an object");

    json::value& labels = metadata["labels"];
    if (!labels.is_object()) labels = json::object();
    kube::Owner owner(kube::api_version(kubernetes::kBatchSandboxes),
                      std::string(kubernetes::kBatchSandboxes.kind), batch.metadata.name,
                      batch.metadata.uid, true, true);
    labels.get_object()[label::kPodIndex] = std::to_string(index);
    labels.get_object()[label::kBatchName] = batch.metadata.name;
    metadata["name"] = pod_name(batch.metadata, index);
    metadata["namespace"] = batch.metadata.name_space;
    json::array owners;
    owners.emplace_back(kube::write_owner(owner));
    metadata["ownerReferences"] = std::move(owners);
    pod["metadata"] = std::move(metadata);
    pod["spec"] = *spec;
    if (static_cast<std::size_t>(index) >= batch.shard_patches.size()) return pod;
    auto patched =
        kube::strategic_merge(std::move(pod), batch.shard_patches[static_cast<std::size_t>(index)],
                              kube::PatchSchema::pod);
    if (!patched) return patched.error().within("spec.shardPatches[" + std::to_string(index) + "]");
    return patched;
}

}  // namespace opensandbox::controller
