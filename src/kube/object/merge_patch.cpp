#include "kube/object/merge_patch.hpp"

namespace opensandbox::kube {

void apply_merge_patch(json::value& target, const json::value& patch) {
    const json::object* changes = patch.if_object();
    if (!changes) {
        target = patch;
        return;
    }
    if (!target.is_object()) target.emplace_object();
    json::object& members = target.get_object();
    for (const auto& [name, change] : *changes) {
        if (change.is_null()) {
            members.erase(name);
        } else {
            apply_merge_patch(members[name], change);
        }
    }
}

json::value make_merge_patch(const json::value& from, const json::value& to) {
    const json::object* before = from.if_object();
    const json::object* after = to.if_object();
    if (!before || !after) return to;
    json::object patch;
    for (const auto& [name, member] : *before) {
        if (!after->contains(name)) patch[name] = nullptr;
    }
    for (const auto& [name, member] : *after) {
        const json::value* old = before->if_contains(name);
        if (!old) {
            patch[name] = member;
        } else if (*old != member) {
            patch[name] = make_merge_patch(*old, member);
        }
    }
    return patch;
}

}  // namespace opensandbox::kube
