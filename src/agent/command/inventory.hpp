#pragma once

#include "agent/command/registry.hpp"
#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Which commands are listed, and how many at once.
struct InventoryQuery {
    static constexpr std::size_t kMostItems = 100;
    std::optional<bool> running;          ///< empty: those that run and those that ended
    std::size_t limit = 50;               ///< 1 to kMostItems
    std::optional<std::uint64_t> before;  ///< the number of the last one that was listed
};

/// Reads `running`, `limit` and `cursor`. `invalid_argument` with the wire code INVALID_QUERY for
/// any other parameter, one that is given twice or empty, and values that are none. Pure.
Result<InventoryQuery> parse_inventory_query(std::string_view raw_query);

/// A page of the commands, the latest first, as the listing route answers it.
std::string inventory_json(const CommandRegistry& registry, const InventoryQuery& query);

}  // namespace opensandbox::agent
