#include "kube/object/strategic_merge.hpp"

#include "kube/object/merged_list.hpp"

#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace opensandbox::kube {
namespace {

Status merge_object(json::object& target, const json::object& patch, PatchedType type);

Status within(Status status, std::string_view place) {
    return status ? status : Status(status.error().within(place));
}

/// `order`: what "$setElementOrder" asks for, or null.
Result<json::array> merge_list(json::array target, const json::array& patch,
                               const PatchedMember& member, const ElementIds* order) {
    auto changes = read_list_changes(patch, member);
    if (!changes) return changes.error();
    auto added = list_without_directives(patch, member.name, &member);
    if (!added) return added.error();
    auto list = MergedList::of(changes->replace ? std::move(*added) : std::move(target), member);
    if (!list) return list.error();
    if (changes->replace) {
        const ElementIds live = list->ids();
        return std::move(*list).in_order(order ? *order : ElementIds(), live);
    }
    list->remove(changes->removed);
    const ElementIds live = list->ids();
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t at = 0; at < live.size(); ++at)
        known.try_emplace(live[at], at);
    for (std::size_t at = 0; at < changes->merged.size(); ++at) {
        const std::string& id = changes->merged[at];
        const auto [found, is_new] = known.try_emplace(id, list->ids().size());
        const std::size_t place = changes->places[at];
        if (is_new) {
            list->add(std::move((*added)[at]), id);
        } else if (const json::object* change = patch[place].if_object()) {
            Status merged =
                merge_object(list->at(found->second).get_object(), *change, member.type);
            if (!merged) return merged.error().within(element_place(member.name, place));
        }
    }
    return std::move(*list).in_order(order ? *order : changes->merged, live);
}

/// "$setElementOrder/FIELD", and what the patch says of the list itself.
Status merge_ordered(json::object& target, const json::object& patch, std::string_view directive,
                     std::string_view field, PatchedType type) {
    const PatchedMember* member = patched_member(type, field);
    if (!member || member->form == PatchedMember::Form::object)
        return invalid(std::string(directive) + ": " + std::string(field) + " is no merged list");
    auto wanted = read_patch_list(patch.at(directive), directive);
    if (!wanted) return wanted.error();
    auto order = read_ids(**wanted, directive, *member);
    if (!order) return order.error();
    json::array changes;
    if (const json::value* change = patch.if_contains(field)) {
        auto list = read_patch_list(*change, field);
        if (!list) return list.error();
        changes = **list;
    }
    auto read = read_list_changes(changes, *member);
    if (!read) return read.error();
    if (!read->fit(*order))
        return invalid(std::string(directive) + ": must name all of " + std::string(field) +
                       " in their order");
    json::value* live = target.if_contains(field);
    if (live && live->is_array()) {
        auto merged = merge_list(std::move(live->get_array()), changes, *member, &*order);
        if (!merged) return merged.error();
        *live = std::move(*merged);
    } else if (patch.contains(field)) {
        auto added = list_without_directives(changes, field, member);
        if (!added) return added.error();
        auto list = MergedList::of(std::move(*added), *member);
        if (!list) return list.error();
        target[field] = std::move(*list).in_order(*order, {});
    }
    return {};
}

/// "$deleteFromPrimitiveList/FIELD".
Status remove_texts(json::object& target, const json::value& texts, std::string_view directive,
                    std::string_view field) {
    auto unwanted = read_patch_list(texts, directive);
    if (!unwanted) return unwanted.error();
    std::unordered_set<std::string> removed;
    for (const json::value& text : **unwanted)
        removed.insert(json::serialize(text));
    json::value* live = target.if_contains(field);
    if (!live || !live->is_array()) return {};
    json::array left;
    for (json::value& element : live->get_array()) {
        if (!removed.contains(json::serialize(element))) left.push_back(std::move(element));
    }
    *live = std::move(left);
    return {};
}

/// "$retainKeys": members that it does not name go.
Status retain_keys(json::object& target, const json::object& patch, std::string_view directive) {
    auto named = json::get_strings(patch, directive);
    if (!named) return named.error();
    if (!*named) return invalid(std::string(directive) + ": must be a list");
    const std::unordered_set<std::string> kept((*named)->begin(), (*named)->end());
    for (const auto& [name, member] : patch) {
        if (!name.starts_with('$') && !member.is_null() && !kept.contains(name))
            return invalid(std::string(directive) + ": must name " + std::string(name));
    }
    json::object left;
    for (auto& [name, member] : target) {
        if (kept.contains(name)) left[name] = std::move(member);
    }
    target = std::move(left);
    return {};
}

Status merge_member(json::object& target, std::string_view name, const json::value& change,
                    const PatchedMember* member) {
    using enum PatchedMember::Form;
    json::value* live = target.if_contains(name);
    if (live && live->is_object() && change.is_object()) {
        const bool known = member && member->form == object;
        return within(merge_object(live->get_object(), change.get_object(),
                                   known ? member->type : PatchedType::unknown),
                      name);
    }
    if (live && live->is_array() && change.is_array() && member && member->form != object) {
        auto merged =
            merge_list(std::move(live->get_array()), change.get_array(), *member, nullptr);
        if (!merged) return merged.error();
        *live = std::move(*merged);
        return {};
    }
    auto added = without_directives(change, name, member);
    if (!added) return added.error();
    if (*added && !change.is_null()) {
        target[name] = std::move(**added);
    } else {
        target.erase(name);
    }
    return {};
}

Status merge_object(json::object& target, const json::object& patch, PatchedType type) {
    auto action = read_patch_action(patch);
    if (!action) return action.error();
    if (*action != PatchAction::merge) {
        auto replaced = object_without_directives(patch, type);
        if (!replaced) return replaced.error();
        target = *action == PatchAction::replace ? std::move(*replaced) : json::object();
        return {};
    }
    // Directives come first, by kind, whatever the order of the document.
    std::unordered_set<std::string_view> ordered;
    for (Directive kind :
         {Directive::retain_keys, Directive::set_order, Directive::remove_texts, Directive::none}) {
        for (const auto& [name, change] : patch) {
            auto what = read_patch_name(name);
            if (!what) return what.error();
            if (what->directive != kind) continue;
            Status done;
            if (kind == Directive::retain_keys) {
                done = retain_keys(target, patch, name);
            } else if (kind == Directive::set_order) {
                done = merge_ordered(target, patch, name, what->field, type);
                ordered.insert(what->field);
            } else if (kind == Directive::remove_texts) {
                done = remove_texts(target, change, name, what->field);
            } else if (!ordered.contains(name)) {
                done = merge_member(target, name, change, patched_member(type, name));
            }
            if (!done) return done;
        }
    }
    return {};
}

PatchedType root_of(PatchSchema schema) {
    switch (schema) {
        case PatchSchema::pod: return PatchedType::pod;
        case PatchSchema::task: return PatchedType::task;
        case PatchSchema::none: break;
    }
    return PatchedType::unknown;
}

}  // namespace

Result<json::object> strategic_merge(json::object target, const json::value& patch,
                                     PatchSchema schema) {
    if (!patch.is_object()) return invalid("must be an object");
    Status merged = merge_object(target, patch.get_object(), root_of(schema));
    if (!merged) return merged.error();
    return target;
}

}  // namespace opensandbox::kube
