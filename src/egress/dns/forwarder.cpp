#include "egress/dns/forwarder.hpp"

#include "base/log.hpp"

namespace opensandbox::egress::dns {

Forwarder::Forwarder(asio::any_io_executor executor, UpstreamSettings settings,
                     CacheSettings bounds, bool strip_ech)
    : settings_(std::move(settings)) {
    rules_.bounds = bounds;
    rules_.strip_ech = strip_ech;
    for (const UpstreamServer& server : settings_.servers)
        upstreams_.push_back(std::make_shared<Upstream>(executor, server, settings_));
    health_ = std::make_shared<UpstreamHealth>(executor, upstreams_, settings_);
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

}  // namespace opensandbox::egress::dns
