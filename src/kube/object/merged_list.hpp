#pragma once

#include "kube/object/strategic_directives.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace opensandbox::kube {

/// What tells elements of one list from each other, in its order.
using ElementIds = std::vector<std::string>;

/// The error names the element as "NAME[INDEX]".
Result<ElementIds> read_ids(const json::array& list, std::string_view name,
                            const PatchedMember& member);

/// A list that a patch is merged into.
class MergedList {
  public:
    static Result<MergedList> of(json::array list, const PatchedMember& member);

    void add(json::value value, std::string id);
    void remove(const std::unordered_set<std::string>& unwanted);
    [[nodiscard]] const ElementIds& ids() const { return ids_; }
    [[nodiscard]] json::value& at(std::size_t index) { return values_[index]; }
    /// In the order of list_order().
    [[nodiscard]] json::array in_order(const ElementIds& wanted, const ElementIds& live) &&;

  private:
    json::array values_;
    ElementIds ids_;
};

/// What the elements of a patch say about a list.
struct ListChanges {
    bool replace = false;  ///< what is merged is all of the list
    std::unordered_set<std::string> removed;
    ElementIds merged;
    std::vector<std::size_t> places;  ///< of what is merged, in the patch

    /// Whether an order names all that is merged as the patch orders it. An empty one does.
    [[nodiscard]] bool fit(const ElementIds& order) const;
};

Result<ListChanges> read_list_changes(const json::array& patch, const PatchedMember& member);

}  // namespace opensandbox::kube
