#include "server/renew/intent_queue.hpp"

#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "json/document.hpp"

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxPayload = 64 * 1024;
constexpr std::size_t kMaxId = 256;
constexpr std::int64_t kMaxPort = 65535;

constexpr std::chrono::seconds kWait{5};
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{10'000};

}  // namespace

std::optional<RenewIntent> parse_renew_intent(std::string_view payload, Timestamp now) {
    if (payload.size() > kMaxPayload) return std::nullopt;
    auto document = json::parse(payload);
    if (!document || !document->is_object()) return std::nullopt;
    const json::object& object = document->get_object();
    auto id = json::get_string(object, "sandbox_id");
    auto observed = json::get_string(object, "observed_at");
    auto port = json::get_integer(object, "port");
    auto uri = json::get_string(object, "request_uri");
    auto space = json::get_string(object, "namespace");
    if (!id || !*id || !observed || !*observed || !port || !uri || !space) return std::nullopt;
    if ((*id)->empty() || (*id)->size() > kMaxId) return std::nullopt;
    if (*port && (**port < 1 || **port > kMaxPort)) return std::nullopt;
    auto at = parse_rfc3339(**observed);
    if (!at || *at < now - kIntentLifetime) return std::nullopt;
    RenewIntent intent;
    intent.sandbox_id = std::move(**id);
    intent.observed_at = *at;
    intent.tenant = space->value_or("");
    return intent;
}

IntentQueue::IntentQueue(asio::any_io_executor executor, std::shared_ptr<AccessRenewer> renewer,
                         redis::Address address, const RenewConfig& config)
    : executor_(std::move(executor)),
      renewer_(std::move(renewer)),
      address_(std::move(address)),
      key_(config.redis_queue_key),
      workers_(config.redis_consumer_concurrency) {}

void IntentQueue::start() {
    log::info("renew_intent", {{"renew_event", "workers_started"}, {"workers", workers_}});
    for (std::int64_t i = 0; i < workers_; ++i)
        net::spawn(executor_, work(shared_from_this()), "renewal queue");
}

void IntentQueue::stop() {
    stopped_ = true;
    for (redis::Client* client : connected_)
        client->close();
}

Awaitable<void> IntentQueue::work(std::shared_ptr<IntentQueue> self) {
    auto pause = kFirstPause;
    while (!self->stopped_) {
        auto client = co_await redis::Client::connect(self->executor_, self->address_);
        if (client) {
            pause = kFirstPause;
            self->told_lost_ = false;
            if (!std::exchange(self->told_connected_, true))
                log::info("renew_intent", {{"renew_event", "redis_connected"}});
            co_await self->consume(**client);
        } else if (!std::exchange(self->told_lost_, true)) {
            log::warn("renew_intent",
                      {{"renew_event", "workers_not_started"},
                       {"error", client.error().message()},
                       {"consequence", "only the proxy renews until Redis answers"}});
        }
        if (self->stopped_) co_return;
        co_await net::sleep_for(pause);
        pause = std::min(pause * 2, kLongestPause);
    }
}

/// Until the connection fails.
Awaitable<void> IntentQueue::consume(redis::Client& client) {
    connected_.insert(&client);
    ScopeExit gone([&] { connected_.erase(&client); });
    while (!stopped_) {
        auto payload = co_await client.pop(key_, kWait);
        if (!payload) {
            if (!stopped_ && std::exchange(told_connected_, false))
                log::warn("renew_intent",
                          {{"renew_event", "redis_lost"}, {"error", payload.error().message()}});
            co_return;
        }
        if (!*payload) continue;
        auto intent = parse_renew_intent(**payload, now());
        if (intent) co_await renewer_->reported(intent->sandbox_id, intent->tenant);
    }
}

}  // namespace opensandbox::server
