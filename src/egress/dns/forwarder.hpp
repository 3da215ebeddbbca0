#pragma once

#include "egress/dns/answer.hpp"
#include "egress/dns/upstream_health.hpp"

#include <memory>

namespace opensandbox::egress::dns {

/// Asks the upstreams one after another (network 1.4): NOERROR, also an empty one, and NXDOMAIN
/// end the search; another code, silence or nonsense leads to the next.
class Forwarder : public std::enable_shared_from_this<Forwarder> {
  public:
    Forwarder(asio::any_io_executor executor, UpstreamSettings settings, CacheSettings bounds,
              bool strip_ech);

    void start();
    void stop();
    /// The cleaned answer; the last upstream's error when all failed.
    static Awaitable<Result<std::shared_ptr<const Answer>>> ask(std::shared_ptr<Forwarder> self,
                                                                UpstreamQuestion question);
    [[nodiscard]] const UpstreamHealth& health() const { return *health_; }

  private:
    UpstreamSettings settings_;
    AnswerRules rules_;
    std::vector<std::shared_ptr<Upstream>> upstreams_;
    std::shared_ptr<UpstreamHealth> health_;
    bool stopped_ = false;
};

}  // namespace opensandbox::egress::dns
