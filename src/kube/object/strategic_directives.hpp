#pragma once

#include "json/document.hpp"
#include "kube/object/strategic_schema.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a strategic merge patch says besides members. Errors are `invalid_argument` and name the
/// place from where the function began.
namespace opensandbox::kube {

enum class Directive : std::uint8_t {
    none,
    patch,        ///< "$patch"
    retain_keys,  ///< "$retainKeys"
    set_order,    ///< "$setElementOrder/FIELD"
    remove_texts  ///< "$deleteFromPrimitiveList/FIELD"
};

/// A name in a patch: of a member, or of a directive and the member that it is about.
struct PatchName {
    Directive directive = Directive::none;
    std::string_view field;
};

/// Names that begin with "$" are directives; an unknown one is an error.
Result<PatchName> read_patch_name(std::string_view name);

enum class PatchAction : std::uint8_t { merge, replace, remove };

/// The "$patch" of an object; `merge` when it has none.
Result<PatchAction> read_patch_action(const json::object& patch);

/// A list of a patch: "NAME: must be a list".
Result<const json::array*> read_patch_list(const json::value& list, std::string_view name);

/// "NAME[INDEX]".
std::string element_place(std::string_view name, std::size_t index);

/// What tells an element of a merged list from the others, as JSON text: the member that is the
/// list's key, or the text itself.
Result<std::string> element_id(const json::value& element, const PatchedMember& list);

/// What a patch puts where nothing was: without directives and null members. Empty when it says
/// that nothing shall be there. `member`: what is known of it, or null.
Result<std::optional<json::value>> without_directives(const json::value& patch,
                                                      std::string_view name,
                                                      const PatchedMember* member);
Result<json::object> object_without_directives(const json::object& patch, PatchedType type);
/// Elements that are directives go, too.
Result<json::array> list_without_directives(const json::array& patch, std::string_view name,
                                            const PatchedMember* member);

}  // namespace opensandbox::kube
