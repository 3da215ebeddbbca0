#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::kube {

/// An object that another belongs to.
struct Owner {
    std::string api_version;
    std::string kind;
    std::string name;
    std::string uid;
    bool controller = false;  ///< it manages the other; at most one does
    bool blocks_deletion = false;

    bool operator==(const Owner&) const = default;
};

/// What every object of a cluster has.
struct Metadata {
    std::string name;
    std::string name_space;
    std::string uid;
    std::string resource_version;
    std::int64_t generation = 0;
    std::optional<Timestamp> creation_time;
    std::optional<Timestamp> deletion_time;  ///< since when it is being deleted
    std::map<std::string, std::string> labels;
    std::map<std::string, std::string> annotations;
    std::vector<std::string> finalizers;
    std::vector<Owner> owners;
};

/// Reads "metadata" of an object. `invalid_argument` names the member.
Result<Metadata> read_metadata(const json::object& object);

/// Values of a label and of an annotation; empty without one.
std::string label_of(const Metadata& metadata, std::string_view name);
std::string annotation_of(const Metadata& metadata, std::string_view name);

/// An entry of metadata.ownerReferences.
json::object write_owner(const Owner& owner);

/// Who manages the object; null: nobody.
const Owner* controller_of(const Metadata& metadata);

/// Whether resource version `a` is later than `b`. They are numbers of any length; when one of them
/// is none, what comes later counts.
bool is_newer(std::string_view a, std::string_view b);

}  // namespace opensandbox::kube
