#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace opensandbox::kube {

/// The order of a merged list, as indices of `merged`: elements that `wanted` names are in its
/// order, all others in the order of `live`, the list as it was. One of these stands before the
/// first of the wanted that was behind it and after what has its place already; what was not in the
/// list comes as early as that allows.
std::vector<std::size_t> list_order(const std::vector<std::string>& merged,
                                    const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& live);

}  // namespace opensandbox::kube
