#include "lifecycle/host/host_pools.hpp"

#include "lifecycle/page.hpp"
#include "lifecycle/pool_template.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

constexpr std::size_t kRefillsAtATime = 2;

Error pool_not_found(const std::string& name) {
    return {ErrorCode::not_found, "KUBERNETES::POOL_NOT_FOUND", "Pool '" + name + "' not found."};
}

Error already_there(const std::string& name) {
    return {ErrorCode::conflict, "KUBERNETES::POOL_ALREADY_EXISTS",
            "Pool '" + name + "' already exists."};
}

Error not_supported() {
    return {ErrorCode::unsupported, "KUBERNETES::POOL_NOT_SUPPORTED",
            "Pool management is not supported by the runtime of this server."};
}

}  // namespace

HostPools::HostPools(asio::any_io_executor executor, Spawn spawn, asio::thread_pool& blocking,
                     store::SandboxStore& store, runtime::Runtime& runtime,
                     const AdmissionRules& rules, const HostSnapshots& snapshots)
    : spawn_(std::move(spawn)),
      blocking_(blocking),
      store_(store),
      runtime_(runtime),
      rules_(rules),
      snapshots_(snapshots),
      permits_(std::move(executor), kRefillsAtATime) {}

std::string HostPools::Entry::json() const {
    model::PoolStatus status;
    status.total = counts().total();
    status.allocated = allocated;
    status.available = static_cast<std::int64_t>(idle.size());
    return model::to_json(record.pool, status);
}

Awaitable<Status> HostPools::commit(Change change) {
    store::SandboxStore& store = store_;
    std::function<Status()> work = [change = std::move(change), &store] { return change(store); };
    co_return co_await net::run_blocking<Status>(blocking_, std::move(work));
}

Status HostPools::supported() const {
    if (runtime_.capabilities().pools) return {};
    return not_supported();
}

Result<HostPools::EntryPtr> HostPools::find(const Key& key) const {
    if (auto possible = supported(); !possible) return possible.error();
    auto at = pools_.find(key);
    if (at == pools_.end()) return pool_not_found(key.second);
    return at->second;
}

bool HostPools::is_current(const EntryPtr& entry) const {
    auto at = pools_.find(Key(entry->record.tenant, entry->record.pool.name));
    return at != pools_.end() && at->second == entry;
}

Awaitable<Result<std::string>> HostPools::create(model::PoolRequest request, std::string tenant) {
    if (auto possible = supported(); !possible) co_return possible.error();
    if (auto ok = check_capacity(request.capacity); !ok) co_return ok.error();
    auto base = parse_template(request.template_json);
    if (!base) co_return base.error();
    auto admitted = admit_idle(base.value(), tenant);
    if (!admitted) co_return admitted.error().within("template");
    Key key(tenant, request.name);
    if (pools_.contains(key)) co_return already_there(request.name);
    auto entry = std::make_shared<Entry>();
    entry->base = std::move(base.value());
    entry->record.tenant = std::move(tenant);
    entry->record.pool.name = request.name;
    entry->record.pool.template_json = std::move(request.template_json);
    entry->record.pool.capacity = request.capacity;
    entry->record.pool.created_at = now();
    Change insert = [row = entry->record](store::SandboxStore& store) {
        return store.pools().insert(row);
    };
    auto inserted = co_await commit(std::move(insert));
    if (!inserted && inserted.error().code() == ErrorCode::conflict) {
        co_return already_there(request.name);
    }
    if (!inserted) co_return inserted.error().within("row of the pool");
    pools_.emplace(std::move(key), entry);
    reconcile(entry);
    co_return entry->json();
}

Result<std::string> HostPools::get(const Key& key) const {
    auto entry = find(key);
    if (!entry) return entry.error();
    return entry.value()->json();
}

Result<std::string> HostPools::list(const std::string& tenant) const {
    if (auto possible = supported(); !possible) return possible.error();
    std::string out = "{\"items\":[";
    for (const auto& [key, entry] : pools_) {
        if (!is_shown_to(tenant, key.first)) continue;
        if (out.back() != '[') out += ',';
        out += entry->json();
    }
    return out + "]}";
}

Awaitable<Result<std::string>> HostPools::resize(Key key, model::PoolCapacity capacity) {
    auto found = find(key);
    if (!found) co_return found.error();
    if (auto ok = check_capacity(capacity); !ok) co_return ok.error();
    EntryPtr entry = found.value();
    store::PoolRecord changed = entry->record;
    changed.pool.capacity = capacity;
    ++changed.pool.revision;
    Change update = [changed](store::SandboxStore& store) {
        return store.pools().set_capacity(changed);
    };
    auto updated = co_await commit(std::move(update));
    if (!updated) co_return updated.error().within("row of the pool");
    entry->record.pool.capacity = capacity;
    entry->record.pool.revision = changed.pool.revision;
    reconcile(entry);
    co_return entry->json();
}

/// The row first: idle sandboxes without a pool are removed at the next start.
Awaitable<Status> HostPools::remove(Key key) {
    auto found = find(key);
    if (!found) co_return found.error();
    Change drop = [key](store::SandboxStore& store) {
        return store.pools().remove(key.first, key.second);
    };
    auto dropped = co_await commit(std::move(drop));
    if (!dropped) co_return dropped.error().within("row of the pool");
    EntryPtr entry = found.value();
    if (!is_current(entry)) co_return pool_not_found(key.second);
    pools_.erase(key);
    auto idle = std::exchange(entry->idle, {});
    for (const auto& record : idle)
        co_await destroy(record.sandbox.id);
    co_return Status();
}

Result<model::CreateRequest> HostPools::open(const Key& key) const {
    auto entry = find(key);
    if (!entry) return entry.error();
    if (entry.value()->refused) return *entry.value()->refused;
    const auto& pool = entry.value()->record.pool;
    if (!has_room(pool.capacity, entry.value()->counts())) {
        return Error(ErrorCode::resource_exhausted, "KUBERNETES::POOL_CAPACITY_EXHAUSTED",
                     "Pool '" + pool.name + "' has no sandbox left (capacitySpec.poolMax " +
                         std::to_string(pool.capacity.pool_max) + ").");
    }
    return entry.value()->base;
}

std::vector<HostPools::Key> HostPools::candidates(const std::string& tenant) const {
    std::vector<Key> keys;
    for (const bool idle : {true, false}) {
        for (const auto& [key, entry] : pools_) {
            if (key.first == tenant && entry->idle.empty() != idle) keys.push_back(key);
        }
    }
    return keys;
}

bool HostPools::has_idle(const Key& key) const {
    const auto at = pools_.find(key);
    return at != pools_.end() && !at->second->idle.empty();
}

std::optional<store::SandboxRecord> HostPools::take(const Key& key) {
    auto at = pools_.find(key);
    if (at == pools_.end() || at->second->idle.empty()) return std::nullopt;
    auto record = std::move(at->second->idle.front());
    at->second->idle.pop_front();
    return record;
}

void HostPools::give_back(store::SandboxRecord record) {
    Key key(record.tenant, record.sandbox.pool);
    auto at = pools_.find(key);
    if (at == pools_.end()) return discard(record.sandbox.id);
    at->second->idle.push_front(std::move(record));
    reconcile(at->second);
}

void HostPools::count_allocated(const Key& key, std::int64_t change) {
    auto at = pools_.find(key);
    if (at == pools_.end()) return;
    at->second->allocated = std::max<std::int64_t>(0, at->second->allocated + change);
    reconcile(at->second);
}

bool HostPools::handle_exit(const std::string& id) {
    if (auto at = starting_.find(id); at != starting_.end()) {
        at->second = true;
        return true;
    }
    for (const auto& [key, entry] : pools_) {
        auto at = std::ranges::find_if(entry->idle,
                                       [&](const auto& record) { return record.sandbox.id == id; });
        if (at == entry->idle.end()) continue;
        entry->idle.erase(at);
        discard(id);
        reconcile(entry);
        return true;
    }
    return false;
}

}  // namespace opensandbox::lifecycle
