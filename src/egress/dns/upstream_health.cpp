#include "egress/dns/upstream_health.hpp"

#include "base/log.hpp"
#include "net/dns/wire_reader.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace opensandbox::egress::dns {

namespace {

constexpr std::chrono::milliseconds kMaxProbe{2000};
constexpr std::size_t kMaxLabel = 63;

}  // namespace

Result<UpstreamQuestion> probe_question(std::string_view name) {
    const std::string text(name);
    const auto wrong = [&](std::string_view why) {
        return Error(ErrorCode::invalid_argument,
                     "probe name \"" + text + "\": " + std::string(why));
    };
    UpstreamQuestion question;
    question.type = net::dns::kTypeA;
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty()) {
        if (text.empty()) return wrong("is empty");
        question.type = net::dns::kTypeNs;
    }
    while (!name.empty()) {
        const std::size_t size = std::min(name.find('.'), name.size());
        if (size == 0 || size > kMaxLabel) return wrong("a label must have 1 to 63 bytes");
        question.name += static_cast<char>(size);
        question.name += name.substr(0, size);
        name.remove_prefix(std::min(size + 1, name.size()));
    }
    question.name += '\0';
    if (question.name.size() > net::dns::kMaxName) return wrong("is longer than 253 bytes");
    question.name = net::dns::lower_case(question.name);
    return question;
}

UpstreamHealth::UpstreamHealth(asio::any_io_executor executor,
                               std::vector<std::shared_ptr<Upstream>> upstreams,
                               const UpstreamSettings& settings)
    : executor_(executor),
      timeout_(std::min(kMaxProbe, settings.timeout)),
      interval_(settings.probe_interval),
      timer_(executor) {
    for (auto& upstream : upstreams) {
        Watched watched;
        watched.upstream = std::move(upstream);
        watched_.push_back(std::move(watched));
    }
    auto question = probe_question(settings.probe);
    if (!question) question = probe_question(".");
    question_ = std::move(*question);
}

void UpstreamHealth::start() {
    net::spawn(executor_, run(shared_from_this()), "dns: probing upstreams");
}

void UpstreamHealth::stop() {
    stopped_ = true;
    timer_.cancel();
}

Awaitable<void> UpstreamHealth::run(std::shared_ptr<UpstreamHealth> self) {
    while (!self->stopped_) {
        for (std::size_t i = 0; i < self->watched_.size(); ++i)
            self->probe(i);
        self->timer_.expires_after(self->interval_);
        co_await self->timer_.async_wait(kAsTupleAwaitable);
    }
}

void UpstreamHealth::probe(std::size_t index) {
    if (stopped_ || watched_[index].probing) return;
    watched_[index].probing = true;
    net::spawn(executor_, probe_one(shared_from_this(), index), "dns: a probe");
}

Awaitable<void> UpstreamHealth::probe_one(std::shared_ptr<UpstreamHealth> self, std::size_t index) {
    Watched& watched = self->watched_[index];
    const bool answered =
        co_await Upstream::probe(watched.upstream, self->question_, self->timeout_);
    watched.probing = false;
    if (self->stopped_ || watched.healthy == answered) co_return;
    watched.healthy = answered;
    const std::string server = watched.upstream->server().endpoint.address().to_string();
    if (answered) {
        log::info("an upstream resolver answers again", {{"server", server}});
    } else {
        log::warn("an upstream resolver does not answer", {{"server", server}});
    }
}

void UpstreamHealth::suspect(const std::shared_ptr<Upstream>& upstream) {
    for (std::size_t i = 0; i < watched_.size(); ++i) {
        if (watched_[i].upstream == upstream) probe(i);
    }
}

std::vector<std::shared_ptr<Upstream>> UpstreamHealth::order() const {
    std::vector<std::shared_ptr<Upstream>> order;
    for (const Watched& watched : watched_) {
        if (watched.healthy) order.push_back(watched.upstream);
    }
    if (!order.empty()) return order;
    for (const Watched& watched : watched_)
        order.push_back(watched.upstream);
    return order;
}

std::vector<bool> UpstreamHealth::healthy() const {
    std::vector<bool> healthy;
    for (const Watched& watched : watched_)
        healthy.push_back(watched.healthy);
    return healthy;
}

}  // namespace opensandbox::egress::dns
