#include "agent/api/routes.hpp"
#include "agent/command/inventory.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any query lists a bounded number of commands or is refused; any target is one of the agent's own
/// or that of a port.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string text(reinterpret_cast<const char*>(data), size);
    auto query = agent::parse_inventory_query(text);
    if (query && (query->limit < 1 || query->limit > agent::InventoryQuery::kMostItems))
        std::abort();
    if (!query && query.error().wire() != "INVALID_QUERY") std::abort();
    constexpr std::uint16_t kOwn = 44772;
    if (auto to = agent::proxy_target(text)) {
        if (to->port == 0 || !to->target.starts_with('/')) std::abort();
    }
    agent::take_own_prefix(text, kOwn);
    if (auto to = agent::proxy_target(text); to && to->port == kOwn) std::abort();
    return 0;
}
