#include "kube/object/strategic_directives.hpp"

#include <array>
#include <utility>

namespace opensandbox::kube {
namespace {

constexpr std::string_view kAction = "$patch";

}  // namespace

Result<PatchName> read_patch_name(std::string_view name) {
    if (!name.starts_with('$')) return PatchName{Directive::none, name};
    if (name == kAction) return PatchName{Directive::patch, {}};
    if (name == "$retainKeys") return PatchName{Directive::retain_keys, {}};
    for (auto [prefix, directive] :
         {std::pair<std::string_view, Directive>("$setElementOrder/", Directive::set_order),
          std::pair<std::string_view, Directive>("$deleteFromPrimitiveList/",
                                                 Directive::remove_texts)}) {
        if (name.starts_with(prefix) && name.size() > prefix.size())
            return PatchName{directive, name.substr(prefix.size())};
    }
    return invalid(std::string(name) + ": is no directive of a strategic merge patch");
}

Result<PatchAction> read_patch_action(const json::object& patch) {
    const json::value* said = patch.if_contains(kAction);
    if (!said) return PatchAction::merge;
    if (*said == "merge") return PatchAction::merge;
    if (*said == "replace") return PatchAction::replace;
    if (*said == "delete") return PatchAction::remove;
    return invalid(std::string(kAction) + ": must be merge, replace or delete");
}

Result<const json::array*> read_patch_list(const json::value& list, std::string_view name) {
    if (const json::array* elements = list.if_array()) return elements;
    return invalid(std::string(name) + ": must be a list");
}

std::string element_place(std::string_view name, std::size_t index) {
    return std::string(name) + "[" + std::to_string(index) + "]";
}

Result<std::string> element_id(const json::value& element, const PatchedMember& list) {
    if (list.form == PatchedMember::Form::text_list) {
        if (!element.is_string()) return invalid("must be a text");
        return json::serialize(element);
    }
    if (!element.is_object()) return invalid("must be an object");
    const json::value* key = json::find(element.get_object(), list.key);
    if (!key) return invalid(std::string(list.key) + ": is missing; the list is merged by it");
    if (key->is_structured())
        return invalid(std::string(list.key) + ": must be a text or a number");
    return json::serialize(*key);
}

Result<std::optional<json::value>> without_directives(const json::value& patch,
                                                      std::string_view name,
                                                      const PatchedMember* member) {
    using Left = std::optional<json::value>;
    if (const json::array* elements = patch.if_array()) {
        auto list = list_without_directives(*elements, name, member);
        if (!list) return list.error();
        return Left(std::move(*list));
    }
    const json::object* members = patch.if_object();
    if (!members) return Left(patch);
    auto action = read_patch_action(*members);
    if (!action) return action.error().within(name);
    if (*action == PatchAction::remove) return Left();
    const bool known = member && member->form == PatchedMember::Form::object;
    auto object = object_without_directives(*members, known ? member->type : PatchedType::unknown);
    if (!object) return object.error().within(name);
    return Left(std::move(*object));
}

Result<json::object> object_without_directives(const json::object& patch, PatchedType type) {
    json::object made;
    for (const auto& [name, member] : patch) {
        auto what = read_patch_name(name);
        if (!what) return what.error();
        if (what->directive != Directive::none || member.is_null()) continue;
        auto left = without_directives(member, name, patched_member(type, name));
        if (!left) return left.error();
        if (*left) made[name] = std::move(**left);
    }
    return made;
}

Result<json::array> list_without_directives(const json::array& patch, std::string_view name,
                                            const PatchedMember* member) {
    const bool merged = member && member->form != PatchedMember::Form::object;
    json::array made;
    for (std::size_t index = 0; index < patch.size(); ++index) {
        const std::string place = element_place(name, index);
        const json::object* members = patch[index].if_object();
        auto action = members ? read_patch_action(*members) : PatchAction::merge;
        if (!action) return action.error().within(place);
        if (*action != PatchAction::merge) continue;
        if (merged) {
            if (auto id = element_id(patch[index], *member); !id) return id.error().within(place);
        }
        if (!members) {
            auto left = without_directives(patch[index], place, nullptr);
            if (!left) return left.error();
            made.push_back(std::move(**left));
            continue;
        }
        auto element =
            object_without_directives(*members, merged ? member->type : PatchedType::unknown);
        if (!element) return element.error().within(place);
        made.emplace_back(std::move(*element));
    }
    return made;
}

}  // namespace opensandbox::kube
