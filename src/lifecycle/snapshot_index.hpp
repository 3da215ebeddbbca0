#pragma once

#include "lifecycle/page.hpp"
#include "store/snapshot_store.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::lifecycle {

/// Which snapshots a list shows (lifecycle 1.4).
struct SnapshotQuery {
    std::string tenant;
    std::optional<std::string> sandbox_id;
    std::optional<std::string> name;  ///< exactly
    /// Any of these; set but empty matches nothing.
    std::optional<std::vector<model::SnapshotState>> states;
    Page page;
};

/// Every snapshot in memory, with its rendered JSON: reads never touch the disk. Pure.
class SnapshotIndex {
  public:
    struct Entry {
        store::SnapshotRecord record;
        std::string json;  ///< kept in step with the record
    };

    void put(store::SnapshotRecord record);
    void erase(const std::string& id);
    [[nodiscard]] const Entry* find(std::string_view id) const;
    /// `{"items":[…],"pagination":{…}}`, newest first, equal times by id, greatest first.
    [[nodiscard]] std::string list(const SnapshotQuery& query) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    void for_each(const std::function<void(const store::SnapshotRecord&)>& visit) const;

  private:
    std::map<std::string, Entry, std::less<>> entries_;
    std::set<std::pair<Timestamp, std::string>, std::greater<>> order_;
};

}  // namespace opensandbox::lifecycle
