#include "server/renew/access_renewer.hpp"

#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "net/task.hpp"

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxEntries = 8192;

void log_skip(std::string_view source, const std::string& id, std::string_view reason,
              const std::string& why) {
    log::info("renew_intent", {{"renew_event", "renew_failed"},
                               {"renew_source", source},
                               {"renew_sandbox_id", id},
                               {"renew_skip_reason", reason},
                               {"error", why}});
}

}  // namespace

AccessRenewer::AccessRenewer(asio::any_io_executor executor,
                             std::shared_ptr<lifecycle::Lifecycle> lifecycle,
                             std::chrono::seconds min_interval)
    : executor_(std::move(executor)),
      lifecycle_(std::move(lifecycle)),
      min_interval_(min_interval) {}

AccessRenewer::Entry& AccessRenewer::entry_of(std::string_view id) {
    if (auto found = by_id_.find(id); found != by_id_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return entries_.front();
    }
    if (entries_.size() >= kMaxEntries && !entries_.back().running) {
        by_id_.erase(entries_.back().id);
        entries_.pop_back();
    }
    entries_.emplace_front();
    entries_.front().id = id;
    by_id_.emplace(entries_.front().id, entries_.begin());
    return entries_.front();
}

void AccessRenewer::used(std::string_view sandbox_id, const lifecycle::AgentAccess& agent) {
    if (!agent.renew_seconds) return;
    Entry& entry = entry_of(sandbox_id);
    if (entry.running) return;
    if (entry.once && Clock::now() - entry.renewed < min_interval_) return;
    // From now on, not from when the task begins: a burst of requests starts one.
    entry.running = true;
    net::spawn(executor_,
               renew_detached(shared_from_this(), std::string(sandbox_id),
                              std::chrono::seconds(*agent.renew_seconds)),
               "renewal on access");
}

Awaitable<void> AccessRenewer::renew_detached(std::shared_ptr<AccessRenewer> self, std::string id,
                                              std::chrono::seconds by) {
    co_await self->renew(std::move(id), by, "server_proxy");
}

Awaitable<void> AccessRenewer::reported(std::string sandbox_id, std::string tenant) {
    auto agent = lifecycle_->agent(sandbox_id);
    bool foreign = agent && !tenant.empty() && !agent->tenant.empty() && agent->tenant != tenant;
    if (!agent || foreign) {
        log_skip("redis_queue", sandbox_id, "get_sandbox_failed", "unknown sandbox");
        co_return;
    }
    if (!agent->renew_seconds) co_return;
    co_await renew(std::move(sandbox_id), std::chrono::seconds(*agent->renew_seconds),
                   "redis_queue");
}

Awaitable<void> AccessRenewer::renew(std::string id, std::chrono::seconds by, std::string source) {
    bool renewed = false;
    ScopeExit settle([&] {
        Entry& entry = entry_of(id);
        entry.running = false;
        if (!renewed) return;
        entry.once = true;
        entry.renewed = Clock::now();
    });
    // In order: the lifecycle lets changes of one sandbox take turns.
    auto expires_at = co_await lifecycle_->extend(id, by);
    if (expires_at) {
        renewed = true;
        log::info("renew_intent", {{"renew_event", "renew_succeeded"},
                                   {"renew_source", source},
                                   {"renew_sandbox_id", id},
                                   {"expires_at", to_rfc3339(*expires_at)}});
        co_return;
    }
    Error error = expires_at.error();
    std::string_view reason = error.code() == ErrorCode::not_found  ? "get_sandbox_failed"
                              : error.code() == ErrorCode::conflict ? "renew_expiration_rejected"
                                                                    : "renew_expiration_error";
    log_skip(source, id, reason, error.message());
}

}  // namespace opensandbox::server
