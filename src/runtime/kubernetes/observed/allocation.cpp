#include "runtime/kubernetes/observed/allocation.hpp"

#include "runtime/kubernetes/names.hpp"

#include <algorithm>

namespace opensandbox::runtime::kubernetes {
Result<std::vector<std::string>> pods_in(const kube::Metadata& batch, std::string_view annotation) {
    const std::string text = kube::annotation_of(batch, annotation);
    if (text.empty()) return std::vector<std::string>();
    auto document = json::parse(text);
    if (!document || !document->is_object())
        return invalid(std::string(annotation) + ": must be an object");
    auto pods = json::get_strings(document->get_object(), "pods");
    if (!pods) return pods.error().within(annotation);
    return pods->value_or(std::vector<std::string>());
}

std::string pods_text(const std::vector<std::string>& pods) {
    return json::serialize(json::object{{"pods", json::string_array(pods)}});
}

Result<std::vector<std::string>> allocated_pods(const kube::Metadata& batch) {
    auto given = pods_in(batch, annotation::kAllocated);
    if (!given) return given;
    auto back = pods_in(batch, annotation::kRelease);
    if (!back) return back;
    std::erase_if(*given, [&](const std::string& pod) {
        return std::ranges::find(*back, pod) != back->end();
    });
    return given;
}

Claim claim_of(const kube::Metadata& pod) {
    const std::string text = kube::annotation_of(pod, annotation::kClaimedBy);
    Claim claim;
    const std::size_t first = text.find('/');
    const std::size_t last = text.rfind('/');
    claim.sandbox = text.substr(0, first);
    if (last != std::string::npos && last > first)
        claim.since = parse_rfc3339(text.substr(last + 1)).value_or(Timestamp());
    return claim;
}

json::object claim_content(const kube::Metadata& pod, const std::string& sandbox,
                           const std::string& who, Timestamp at) {
    json::object annotations;
    annotations[annotation::kClaimedBy] = sandbox + "/" + who + "/" + to_rfc3339(at);
    json::object metadata{{"name", pod.name}, {"namespace", pod.name_space}, {"uid", pod.uid}};
    metadata["annotations"] = std::move(annotations);
    json::object content{{"apiVersion", "v1"}, {"kind", "Pod"}};
    content["metadata"] = std::move(metadata);
    return content;
}

bool is_idle(const Pod& pod) {
    return pod.is_ready() && !pod.address.empty() && claim_of(pod.metadata).sandbox.empty() &&
           !pod.metadata.labels.contains(std::string(label::kEvict));
}

std::string pool_of(const kube::Metadata& pod) {
    return kube::label_of(pod, label::kPoolName);
}

}  // namespace opensandbox::runtime::kubernetes
