#include "kube/object/metadata.hpp"

#include "json/fields.hpp"

#include <algorithm>

namespace opensandbox::kube {
namespace {

constexpr auto kOwnerMembers = [](auto& walker, auto& owner) {
    walker.put("apiVersion", owner.api_version);
    walker.put("kind", owner.kind);
    walker.put("name", owner.name);
    walker.put("uid", owner.uid);
    walker.put(json::Field("controller").may_lack(), owner.controller);
    walker.put(json::Field("blockOwnerDeletion").may_lack(), owner.blocks_deletion);
};

constexpr auto kMembers = [](auto& walker, auto& metadata) {
    walker.put(json::Field("name").may_lack(), metadata.name);
    walker.put(json::Field("namespace").may_lack(), metadata.name_space);
    walker.put(json::Field("uid").may_lack(), metadata.uid);
    walker.put(json::Field("resourceVersion").may_lack(), metadata.resource_version);
    walker.put(json::Field("generation").may_lack(), metadata.generation);
    walker.put("creationTimestamp", metadata.creation_time);
    walker.put("deletionTimestamp", metadata.deletion_time);
    walker.put("labels", metadata.labels);
    walker.put("annotations", metadata.annotations);
    walker.put("finalizers", metadata.finalizers);
    walker.list(json::Field("ownerReferences").may_lack(), metadata.owners, kOwnerMembers);
};

std::string value_in(const std::map<std::string, std::string>& map, std::string_view name) {
    const auto at = map.find(std::string(name));
    return at == map.end() ? std::string() : at->second;
}

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_zeros(std::string_view number) {
    return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

}  // namespace

Result<Metadata> read_metadata(const json::object& object) {
    const json::value* metadata = json::find(object, "metadata");
    if (!metadata) return invalid("metadata: is missing");
    if (!metadata->is_object()) return invalid("metadata: must be an object");
    auto made = json::read_fields<Metadata>(metadata->get_object(), kMembers);
    if (!made) return made.error().within("metadata");
    return made;
}

std::string label_of(const Metadata& metadata, std::string_view name) {
    return value_in(metadata.labels, name);
}

std::string annotation_of(const Metadata& metadata, std::string_view name) {
    return value_in(metadata.annotations, name);
}

json::object write_owner(const Owner& owner) {
    return json::write_fields(owner, kOwnerMembers);
}

const Owner* controller_of(const Metadata& metadata) {
    const auto found = std::ranges::find(metadata.owners, true, &Owner::controller);
    return found == metadata.owners.end() ? nullptr : &*found;
}

bool is_newer(std::string_view a, std::string_view b) {
    if (!is_number(a) || !is_number(b)) return true;
    a = without_zeros(a);
    b = without_zeros(b);
    return a.size() != b.size() ? a.size() > b.size() : a > b;
}

}  // namespace opensandbox::kube
