#include "kube/object/merged_list.hpp"

#include "kube/object/list_order.hpp"

#include <utility>

namespace opensandbox::kube {

Result<ElementIds> read_ids(const json::array& list, std::string_view name,
                            const PatchedMember& member) {
    ElementIds ids;
    for (std::size_t index = 0; index < list.size(); ++index) {
        auto id = element_id(list[index], member);
        if (!id) return id.error().within(element_place(name, index));
        ids.push_back(std::move(*id));
    }
    return ids;
}

Result<MergedList> MergedList::of(json::array list, const PatchedMember& member) {
    auto ids = read_ids(list, member.name, member);
    if (!ids) return ids.error();
    MergedList made;
    made.values_ = std::move(list);
    made.ids_ = std::move(*ids);
    return made;
}

void MergedList::add(json::value value, std::string id) {
    values_.push_back(std::move(value));
    ids_.push_back(std::move(id));
}

void MergedList::remove(const std::unordered_set<std::string>& unwanted) {
    MergedList left;
    for (std::size_t at = 0; at < ids_.size(); ++at) {
        if (!unwanted.contains(ids_[at])) left.add(std::move(values_[at]), std::move(ids_[at]));
    }
    *this = std::move(left);
}

json::array MergedList::in_order(const ElementIds& wanted, const ElementIds& live) && {
    json::array ordered;
    ordered.reserve(values_.size());
    for (std::size_t at : list_order(ids_, wanted, live))
        ordered.push_back(std::move(values_[at]));
    return ordered;
}

bool ListChanges::fit(const ElementIds& order) const {
    auto next = merged.begin();
    for (const std::string& id : order) {
        if (next != merged.end() && *next == id) ++next;
    }
    return order.empty() || next == merged.end();
}

Result<ListChanges> read_list_changes(const json::array& patch, const PatchedMember& member) {
    ListChanges changes;
    for (std::size_t index = 0; index < patch.size(); ++index) {
        const json::object* members = patch[index].if_object();
        auto action = members ? read_patch_action(*members) : PatchAction::merge;
        if (!action) return action.error().within(element_place(member.name, index));
        if (*action == PatchAction::replace) {
            changes.replace = true;
            continue;
        }
        auto id = element_id(patch[index], member);
        if (!id) return id.error().within(element_place(member.name, index));
        if (*action == PatchAction::remove) {
            changes.removed.insert(std::move(*id));
            continue;
        }
        changes.merged.push_back(std::move(*id));
        changes.places.push_back(index);
    }
    return changes;
}

}  // namespace opensandbox::kube
