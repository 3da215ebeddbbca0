#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kPaginationMembers = [](auto& walker, auto& pagination) {
    walker.put("page", pagination.page);
    walker.put(json::Field("pageSize", "page_size"), pagination.page_size);
    walker.put(json::Field("totalItems", "total_items"), pagination.total_items);
    walker.put(json::Field("totalPages", "total_pages"), pagination.total_pages);
    walker.put(json::Field("hasNextPage", "has_next_page"), pagination.has_next_page);
};

/// A page of documents, each with the members that `item_members` lists.
template <class Members>
constexpr auto page_members(Members item_members) {
    return [item_members](auto& walker, auto& page) {
        walker.list("items", page.items, item_members);
        walker.object("pagination", page.pagination, kPaginationMembers);
    };
}

}  // namespace opensandbox::sdk::fields
