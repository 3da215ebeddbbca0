#include "controller/definition/custom_resources.hpp"

#include "controller/definition/schema.hpp"
#include "kube/api/resource.hpp"
#include "runtime/kubernetes/names.hpp"

#include <cctype>
#include <string>
#include <vector>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
using namespace schema;  // NOLINT(*-using-namespace): its words are what the tables below say

struct Column {
    std::string_view name;
    std::string_view type;
    std::string_view path;
    int priority = 0;
};

struct Definition {
    kube::Resource resource;
    std::vector<std::string_view> short_names;
    std::vector<Column> columns;
    json::object spec;
    json::object status;
    bool scales = false;
};

json::object conditions(std::initializer_list<std::string_view> types) {
    return keyed_list("type", object({{"type", word(types)},
                                      {"status", word({"True", "False"})},
                                      {"reason", text()},
                                      {"message", text()},
                                      {"lastTransitionTime", time()}},
                                     {"type", "status"}));
}

Definition batch_sandbox() {
    Definition made{.resource = kubernetes::kBatchSandboxes,
                    .short_names = {"bsbx"},
                    .columns = {{"DESIRED", "integer", ".spec.replicas"},
                                {"TOTAL", "integer", ".status.replicas"},
                                {"ALLOCATED", "integer", ".status.allocated"},
                                {"Ready", "integer", ".status.ready"},
                                {"TASK_RUNNING", "integer", ".status.taskRunning", 1},
                                {"TASK_SUCCEED", "integer", ".status.taskSucceed", 1},
                                {"TASK_FAILED", "integer", ".status.taskFailed", 1},
                                {"TASK_UNKNOWN", "integer", ".status.taskUnknown", 1},
                                {"EXPIRE", "string", ".spec.expireTime"},
                                {"AGE", "date", ".metadata.creationTimestamp"}},
                    .scales = true};
    json::object spec = object({{"replicas", with_default(int32(), 1)},
                                {"template", foreign_object()},
                                {"shardPatches", anything()},
                                {"poolRef", text()},
                                {"taskTemplate", anything()},
                                {"shardTaskPatches", anything()},
                                {"taskResourcePolicyWhenCompleted", with_default(text(), "Retain")},
                                {"expireTime", time()},
                                {"pause", flag()}},
                               {"replicas"});
    // Pausing moves a pooled sandbox to a template of its own, and "*" becomes the pool that was
    // chosen: both must pass.
    made.spec = with_rule(
        std::move(spec),
        "(has(self.poolRef) ? self.poolRef : '') == (has(oldSelf.poolRef) ? oldSelf.poolRef : '') "
        "|| !has(oldSelf.poolRef) || oldSelf.poolRef in ['', '*'] || "
        "((!has(self.poolRef) || self.poolRef == '') && has(self.template))",
        "poolRef must not change: it would end what runs");
    const json::object count = int32(-1);
    made.status = object(
        {{"observedGeneration", int64()},
         {"replicas", count},
         {"allocated", count},
         {"ready", count},
         {"taskRunning", count},
         {"taskSucceed", count},
         {"taskFailed", count},
         {"taskPending", count},
         {"taskUnknown", count},
         {"phase", word({"Pending", "Succeed", "Pausing", "Paused", "Resuming", "Failed"})},
         {"pauseObservedGeneration", int64()},
         {"conditions", conditions({"Ready", "Progressing", "Paused", "PauseFailed", "ResumeFailed",
                                    "PodFailed", "PoolAllocationPending", "InvalidShardPatch"})}},
        {"replicas", "allocated", "ready", "taskRunning", "taskSucceed", "taskFailed",
         "taskPending", "taskUnknown"});
    return made;
}

Definition pool() {
    Definition made{.resource = kubernetes::kPools,
                    .short_names = {},
                    .columns = {{"TOTAL", "integer", ".status.total"},
                                {"ALLOCATED", "integer", ".status.allocated"},
                                {"AVAILABLE", "integer", ".status.available"},
                                {"UPDATED", "integer", ".status.updated"},
                                {"AGE", "date", ".metadata.creationTimestamp"}}};
    json::object capacity = object({{"bufferMax", int32()},
                                    {"bufferMin", int32()},
                                    {"poolMax", int32()},
                                    {"poolMin", int32()}},
                                   {"bufferMax", "bufferMin", "poolMax", "poolMin"});
    const json::object strategy = object({{"maxUnavailable", count_or_percent()}});
    made.spec = object(
        {{"template", foreign_object()},
         {"capacitySpec", std::move(capacity)},
         {"scaleStrategy", strategy},
         {"updateStrategy", strategy},
         {"recycleStrategy", object({{"type", word({"Delete", "Restart", "Noop"}, "Delete")}})}},
        {"capacitySpec"});
    const json::object count = int32(-1);
    made.status = object({{"observedGeneration", int64()},
                          {"revision", text()},
                          {"total", count},
                          {"allocated", count},
                          {"available", count},
                          {"updated", count}},
                         {"total", "allocated", "available", "revision"});
    return made;
}

Definition snapshot() {
    Definition made{.resource = kubernetes::kSnapshots,
                    .short_names = {"sbxsnap"},
                    .columns = {{"PHASE", "string", ".status.phase"},
                                {"SANDBOX", "string", ".spec.sandboxName"},
                                {"AGE", "date", ".metadata.creationTimestamp"}}};
    made.spec = object({{"sandboxName", text()}}, {"sandboxName"});
    made.status = object(
        {{"phase", word({"Pending", "Committing", "Succeed", "Failed"})},
         {"containers",
          list(object({{"containerName", text()}, {"imageUri", text()}, {"imageDigest", text()}},
                      {"containerName", "imageUri"}))},
         {"conditions", conditions({"Ready", "Failed"})},
         {"sourcePodName", text()},
         {"sourceNodeName", text()},
         {"observedGeneration", int64()}});
    return made;
}

std::string lower(std::string_view text) {
    std::string made;
    for (const char c : text)
        made += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return made;
}

json::array columns_of(const Definition& definition) {
    json::array list;
    for (const Column& column : definition.columns) {
        json::object entry{{"name", column.name}, {"type", column.type}, {"jsonPath", column.path}};
        if (column.priority != 0) entry["priority"] = column.priority;
        list.emplace_back(std::move(entry));
    }
    return list;
}

json::object subresources_of(const Definition& definition) {
    json::object subresources{{"status", json::object()}};
    if (definition.scales) {
        subresources["scale"] = json::object{{"specReplicasPath", ".spec.replicas"},
                                             {"statusReplicasPath", ".status.replicas"}};
    }
    return subresources;
}

json::object document_of(const Definition& definition) {
    const kube::Resource& resource = definition.resource;
    json::object version{{"name", resource.version}, {"served", true}, {"storage", true}};
    version["schema"] = json::object();
    version["schema"].get_object()["openAPIV3Schema"] =
        object({{"apiVersion", text()},
                {"kind", text()},
                {"metadata", json::object{{"type", "object"}}},
                {"spec", definition.spec},
                {"status", definition.status}});
    version["subresources"] = subresources_of(definition);
    version["additionalPrinterColumns"] = columns_of(definition);
    json::object names{{"plural", resource.plural},
                       {"singular", lower(resource.kind)},
                       {"kind", resource.kind},
                       {"listKind", std::string(resource.kind) + "List"}};
    if (!definition.short_names.empty()) {
        json::array list;
        for (const std::string_view name : definition.short_names)
            list.emplace_back(name);
        names["shortNames"] = std::move(list);
    }
    json::object spec{{"group", resource.group}, {"scope", "Namespaced"}};
    spec["names"] = std::move(names);
    json::array versions;
    versions.emplace_back(std::move(version));
    spec["versions"] = std::move(versions);
    json::object metadata{
        {"name", std::string(resource.plural) + "." + std::string(resource.group)}};
    json::object document{{"apiVersion", "apiextensions.k8s.io/v1"},
                          {"kind", "CustomResourceDefinition"}};
    document["metadata"] = std::move(metadata);
    document["spec"] = std::move(spec);
    return document;
}

}  // namespace

json::array custom_resources() {
    json::array documents;
    for (const Definition& definition : {batch_sandbox(), pool(), snapshot()})
        documents.emplace_back(document_of(definition));
    return documents;
}

}  // namespace opensandbox::controller
