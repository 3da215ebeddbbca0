#include "lifecycle/sandbox_index.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

bool selected(const ListQuery& query, const store::SandboxRecord& record) {
    const model::Sandbox& sandbox = record.sandbox;
    if (!query.tenant.empty() && record.tenant != query.tenant) return false;
    if (query.states &&
        std::ranges::find(*query.states, sandbox.status.state) == query.states->end()) {
        return false;
    }
    if (query.metadata.empty()) return true;
    return sandbox.metadata && model::matches(query.metadata, *sandbox.metadata);
}

}  // namespace

bool SandboxIndex::NewestFirst::operator()(const std::pair<Timestamp, const Entry*>& a,
                                           const std::pair<Timestamp, const Entry*>& b) const {
    if (a.first != b.first) return a.first > b.first;
    return a.second->record.sandbox.id > b.second->record.sandbox.id;
}

void SandboxIndex::put(store::SandboxRecord record) {
    std::string id = record.sandbox.id;
    Entry entry;
    const Entry* before = find(id);
    if (before) entry.events = before->events;
    entry.events.add_changes(before ? &before->record.sandbox : nullptr, record.sandbox, now());
    erase(id);
    entry.json = model::to_json(record.sandbox);
    entry.record = std::move(record);
    auto at = entries_.emplace(std::move(id), std::move(entry)).first;
    order_.emplace(at->second.record.sandbox.created_at, &at->second);
}

void SandboxIndex::erase(const std::string& id) {
    auto at = entries_.find(id);
    if (at == entries_.end()) return;
    order_.erase({at->second.record.sandbox.created_at, &at->second});
    entries_.erase(at);
}

const SandboxIndex::Entry* SandboxIndex::find(std::string_view id) const {
    auto at = entries_.find(id);
    return at == entries_.end() ? nullptr : &at->second;
}

void SandboxIndex::update(std::string_view id,
                          const std::function<void(store::SandboxRecord&)>& change) {
    auto at = entries_.find(id);
    if (at == entries_.end()) return;
    model::Sandbox before = at->second.record.sandbox;
    change(at->second.record);
    at->second.events.add_changes(&before, at->second.record.sandbox, now());
    at->second.json = model::to_json(at->second.record.sandbox);
}

std::string SandboxIndex::list(const ListQuery& query) const {
    bool all = !query.states && query.metadata.empty() && query.tenant.empty();
    // Cannot overflow: a page past every sandbox is cut to one past the last.
    auto size = static_cast<std::int64_t>(order_.size());
    std::int64_t skip = query.page - 1 > size ? size : (query.page - 1) * query.page_size;
    std::int64_t total = 0;
    std::string out = "{\"items\":[";
    for (const auto& [created_at, entry] : order_) {
        if (!all && !selected(query, entry->record)) continue;
        if (total >= skip && total - skip < query.page_size) {
            if (total > skip) out += ',';
            out += entry->json;
        } else if (all && total >= skip) {
            total = size;
            break;
        }
        ++total;
    }
    std::int64_t pages = (total + query.page_size - 1) / query.page_size;
    out += "],\"pagination\":{\"page\":" + std::to_string(query.page) +
           ",\"pageSize\":" + std::to_string(query.page_size) +
           ",\"totalItems\":" + std::to_string(total) + ",\"totalPages\":" + std::to_string(pages) +
           ",\"hasNextPage\":" + (query.page < pages ? "true" : "false") + "}}";
    return out;
}

std::array<std::uint64_t, 8> SandboxIndex::counts() const {
    std::array<std::uint64_t, 8> counts{};
    for (const auto& [id, entry] : entries_) {
        ++counts[static_cast<std::size_t>(entry.record.sandbox.status.state)];
    }
    return counts;
}

void SandboxIndex::for_each(const std::function<void(const store::SandboxRecord&)>& visit) const {
    for (const auto& [id, entry] : entries_)
        visit(entry.record);
}

}  // namespace opensandbox::lifecycle
