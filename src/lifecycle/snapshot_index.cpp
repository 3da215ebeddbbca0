#include "lifecycle/snapshot_index.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

bool selected(const SnapshotQuery& query, const store::SnapshotRecord& record) {
    const model::Snapshot& snapshot = record.snapshot;
    if (!is_shown_to(query.tenant, record.tenant)) return false;
    if (query.sandbox_id && snapshot.sandbox_id != *query.sandbox_id) return false;
    if (query.name && snapshot.name != query.name) return false;
    return !query.states ||
           std::ranges::find(*query.states, snapshot.status.state) != query.states->end();
}

}  // namespace

void SnapshotIndex::put(store::SnapshotRecord record) {
    std::string id = record.snapshot.id;
    erase(id);
    order_.emplace(record.snapshot.created_at, id);
    Entry entry;
    entry.json = model::to_json(record.snapshot);
    entry.record = std::move(record);
    entries_.emplace(std::move(id), std::move(entry));
}

void SnapshotIndex::erase(const std::string& id) {
    auto at = entries_.find(id);
    if (at == entries_.end()) return;
    order_.erase({at->second.record.snapshot.created_at, id});
    entries_.erase(at);
}

const SnapshotIndex::Entry* SnapshotIndex::find(std::string_view id) const {
    auto at = entries_.find(id);
    return at == entries_.end() ? nullptr : &at->second;
}

std::string SnapshotIndex::list(const SnapshotQuery& query) const {
    auto skip = items_before(query.page, static_cast<std::int64_t>(order_.size()));
    std::int64_t total = 0;
    std::string out = "{\"items\":[";
    for (const auto& [created_at, id] : order_) {
        const Entry& entry = entries_.find(id)->second;
        if (!selected(query, entry.record)) continue;
        if (total >= skip && total - skip < query.page.size) {
            if (total > skip) out += ',';
            out += entry.json;
        }
        ++total;
    }
    return out + "]," + pagination_json(query.page, total) + "}";
}

void SnapshotIndex::for_each(const std::function<void(const store::SnapshotRecord&)>& visit) const {
    for (const auto& [id, entry] : entries_)
        visit(entry.record);
}

}  // namespace opensandbox::lifecycle
