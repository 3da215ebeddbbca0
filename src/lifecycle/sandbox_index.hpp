#pragma once

#include "lifecycle/sandbox_events.hpp"
#include "model/metadata.hpp"
#include "store/sandbox_store.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::lifecycle {

/// Which sandboxes a list shows (lifecycle 1.4).
struct ListQuery {
    /// Any of these; set but empty matches nothing.
    std::optional<std::vector<model::SandboxState>> states;
    model::StringMap metadata;  ///< all of these
    std::string tenant;         ///< only this tenant's; empty: where there is one tenant
    std::int64_t page = 1;
    std::int64_t page_size = 20;
};

/// Every sandbox in memory, with its rendered JSON: reads never touch the disk.
class SandboxIndex {
  public:
    struct Entry {
        store::SandboxRecord record;
        std::string json;  ///< kept in step with the record
        SandboxEvents events;
    };

    void put(store::SandboxRecord record);
    void erase(const std::string& id);
    [[nodiscard]] const Entry* find(std::string_view id) const;
    /// Changes a record and renders it again; nothing when it is unknown.
    void update(std::string_view id, const std::function<void(store::SandboxRecord&)>& change);
    /// The body of a list: `{"items":[…],"pagination":{…}}`, newest first.
    [[nodiscard]] std::string list(const ListQuery& query) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    /// Sandboxes by state, in the order of SandboxState.
    [[nodiscard]] std::array<std::uint64_t, 8> counts() const;
    void for_each(const std::function<void(const store::SandboxRecord&)>& visit) const;

  private:
    struct NewestFirst {
        bool operator()(const std::pair<Timestamp, const Entry*>& a,
                        const std::pair<Timestamp, const Entry*>& b) const;
    };
    std::map<std::string, Entry, std::less<>> entries_;
    std::set<std::pair<Timestamp, const Entry*>, NewestFirst> order_;
};

}  // namespace opensandbox::lifecycle
