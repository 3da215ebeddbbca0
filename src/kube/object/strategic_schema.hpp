#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// What a strategic merge patch knows of the objects that it is applied to.
namespace opensandbox::kube {

/// What an object is; of `unknown` ones no list is merged.
enum class PatchedType : std::uint8_t {
    unknown,
    pod,
    metadata,
    pod_spec,
    pod_status,
    container,
    volume,
    ephemeral_volume,
    claim_template,
    task,
    task_spec,
    process,
};

/// A member that is no mere value.
struct PatchedMember {
    enum class Form : std::uint8_t {
        object,
        keyed_list,  ///< of objects, merged by the member `key` of each
        text_list,   ///< merged as a set
    };
    PatchedType of;
    std::string_view name;
    Form form;
    PatchedType type = PatchedType::unknown;  ///< of the object, or of each in the list
    std::string_view key{};
};

/// The tags patchStrategy and patchMergeKey of k8s.io/api/core/v1 as far as a Pod reaches them, and
/// what tasks are merged by. A list that is not here stands for the one before it.
inline constexpr auto kPatchedMembers = [] {
    using enum PatchedMember::Form;
    using Type = PatchedType;
    return std::to_array<PatchedMember>({
        {Type::pod, "metadata", object, Type::metadata},
        {Type::pod, "spec", object, Type::pod_spec},
        {Type::pod, "status", object, Type::pod_status},
        {Type::metadata, "finalizers", text_list},
        {Type::metadata, "ownerReferences", keyed_list, Type::unknown, "uid"},
        {Type::pod_spec, "containers", keyed_list, Type::container, "name"},
        {Type::pod_spec, "initContainers", keyed_list, Type::container, "name"},
        {Type::pod_spec, "ephemeralContainers", keyed_list, Type::container, "name"},
        {Type::pod_spec, "volumes", keyed_list, Type::volume, "name"},
        {Type::pod_spec, "imagePullSecrets", keyed_list, Type::unknown, "name"},
        {Type::pod_spec, "hostAliases", keyed_list, Type::unknown, "ip"},
        {Type::pod_spec, "topologySpreadConstraints", keyed_list, Type::unknown, "topologyKey"},
        {Type::pod_spec, "schedulingGates", keyed_list, Type::unknown, "name"},
        {Type::pod_spec, "resourceClaims", keyed_list, Type::unknown, "name"},
        {Type::pod_status, "conditions", keyed_list, Type::unknown, "type"},
        {Type::pod_status, "hostIPs", keyed_list, Type::unknown, "ip"},
        {Type::pod_status, "podIPs", keyed_list, Type::unknown, "ip"},
        {Type::pod_status, "resourceClaimStatuses", keyed_list, Type::unknown, "name"},
        {Type::container, "env", keyed_list, Type::unknown, "name"},
        {Type::container, "ports", keyed_list, Type::unknown, "containerPort"},
        {Type::container, "volumeMounts", keyed_list, Type::unknown, "mountPath"},
        {Type::container, "volumeDevices", keyed_list, Type::unknown, "devicePath"},
        {Type::volume, "ephemeral", object, Type::ephemeral_volume},
        {Type::ephemeral_volume, "volumeClaimTemplate", object, Type::claim_template},
        {Type::claim_template, "metadata", object, Type::metadata},
        {Type::task, "metadata", object, Type::metadata},
        {Type::task, "spec", object, Type::task_spec},
        {Type::task_spec, "process", object, Type::process},
        {Type::process, "env", keyed_list, Type::unknown, "name"},
    });
}();

/// Null for what is of no known form.
constexpr const PatchedMember* patched_member(PatchedType of, std::string_view name) {
    for (const PatchedMember& member : kPatchedMembers) {
        if (member.of == of && member.name == name) return &member;
    }
    return nullptr;
}

}  // namespace opensandbox::kube
