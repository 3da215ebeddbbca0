#pragma once

#include "json/document.hpp"

#include <cstdint>

namespace opensandbox::kube {

enum class PatchSchema : std::uint8_t {
    none,  ///< nothing is known of the object: its lists are replaced
    pod,   ///< a Pod, or a template of one
    task   ///< {"spec": {"process": …}}
};

/// `target` with a strategic merge patch applied, as an API server does it: objects and the lists
/// that the schema names are merged, null deletes a member, any other value stands for the one that
/// was there. Directives: $patch (replace, delete, merge), $retainKeys, $setElementOrder/FIELD and
/// $deleteFromPrimitiveList/FIELD. Elements of the patch come in its order, and new ones before
/// those that it does not name. `invalid_argument` names the place in the patch.
Result<json::object> strategic_merge(json::object target, const json::value& patch,
                                     PatchSchema schema);

}  // namespace opensandbox::kube
