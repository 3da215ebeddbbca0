#include "egress/dns/forwarder.hpp"

#include "base/log.hpp"
#include "net/task.hpp"

#include <boost/asio/steady_timer.hpp>

namespace opensandbox::egress::dns {

/// A question that upstreams are asked just now. The timer never fires: cancelling it wakes all who
/// wait.
struct Forwarder::Flight {
    Flight(const asio::any_io_executor& executor, const CacheKey& k)
        : name(k.name), key(k), landed(executor, asio::steady_timer::time_point::max()) {
        key.name = name;
    }
    std::string name;
    CacheKey key;
    asio::steady_timer landed;
    bool done = false;
    std::shared_ptr<CacheEntry> entry;
};

Forwarder::Forwarder(asio::any_io_executor executor, UpstreamSettings settings,
                     CacheSettings bounds, bool strip_ech)
    : executor_(std::move(executor)), settings_(std::move(settings)) {
    rules_.bounds = bounds;
    rules_.strip_ech = strip_ech;
    for (const UpstreamServer& server : settings_.servers)
        upstreams_.push_back(std::make_shared<Upstream>(executor_, server, settings_));
    health_ = std::make_shared<UpstreamHealth>(executor_, upstreams_, settings_);
}

void Forwarder::start() {
    health_->start();
}

void Forwarder::stop() {
    stopped_ = true;
    health_->stop();
    for (const auto& upstream : upstreams_)
        upstream->close();
}

Awaitable<Result<std::shared_ptr<const Answer>>> Forwarder::ask(std::shared_ptr<Forwarder> self,
                                                                UpstreamQuestion question) {
    Error last(ErrorCode::unavailable, "no upstream resolver is configured");
    AnswerRules rules = self->rules_;
    rules.dnssec = question.dnssec;
    const auto order = self->health_->order();
    for (const std::shared_ptr<Upstream>& upstream : order) {
        if (self->stopped_) co_return Error(ErrorCode::cancelled, "the proxy stops");
        auto response = co_await Upstream::ask(upstream, question, self->settings_.timeout);
        if (!response) {
            last = response.error();
            self->health_->suspect(upstream);
        } else {
            auto answer = make_answer(std::move(*response), rules);
            if (answer) co_return std::move(*answer);
            last = answer.error();
        }
        log::debug("an upstream resolver gives no answer", {{"reason", last.message()}});
    }
    co_return last;
}

Awaitable<std::shared_ptr<CacheEntry>> Forwarder::ask_once(std::shared_ptr<Forwarder> self,
                                                           CacheKey key, UpstreamQuestion question,
                                                           Keep keep, bool& shared) {
    const auto found = self->flights_.find(key);
    shared = found != self->flights_.end();
    std::shared_ptr<Flight> flight;
    if (shared) {
        flight = found->second;
    } else {
        if (self->flights_.size() >= self->settings_.in_flight) co_return nullptr;
        flight = std::make_shared<Flight>(self->executor_, key);
        self->flights_.emplace(flight->key, flight);
        net::spawn(self->executor_, fly(self, flight, std::move(question), std::move(keep)),
                   "dns: a question");
    }
    while (!flight->done)
        co_await flight->landed.async_wait(kAsTupleAwaitable);
    co_return flight->entry;
}

Awaitable<void> Forwarder::fly(std::shared_ptr<Forwarder> self, std::shared_ptr<Flight> flight,
                               UpstreamQuestion question, Keep keep) {
    try {
        auto answer = co_await ask(self, std::move(question));
        if (answer) {
            flight->entry = std::make_shared<CacheEntry>(flight->key, std::move(*answer),
                                                         CacheEntry::Time::clock::now());
            keep(flight->entry);
        }
    } catch (const std::exception&) {
        // Out of memory, say: those who wait get no answer, which is all that can be done.
        flight->entry = nullptr;
    }
    flight->done = true;
    self->flights_.erase(flight->key);
    flight->landed.cancel();
}

}  // namespace opensandbox::egress::dns
