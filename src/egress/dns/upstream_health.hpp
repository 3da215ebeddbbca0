#pragma once

#include "egress/dns/upstream.hpp"

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <vector>

namespace opensandbox::egress::dns {

/// Which upstreams answer (network 1.4): each is asked at the start, then at every interval, and
/// when a question to it failed; any reply will do. Until the first probe has ended all count as
/// healthy.
class UpstreamHealth : public std::enable_shared_from_this<UpstreamHealth> {
  public:
    UpstreamHealth(asio::any_io_executor executor, std::vector<std::shared_ptr<Upstream>> upstreams,
                   const UpstreamSettings& settings);

    void start();
    void stop();
    /// The healthy ones in order; all when none is.
    [[nodiscard]] std::vector<std::shared_ptr<Upstream>> order() const;
    [[nodiscard]] std::vector<bool> healthy() const;
    /// A question to it failed: probes it now.
    void suspect(const std::shared_ptr<Upstream>& upstream);

  private:
    struct Watched {
        std::shared_ptr<Upstream> upstream;
        bool healthy = true;
        bool probing = false;
    };
    void probe(std::size_t index);
    static Awaitable<void> probe_one(std::shared_ptr<UpstreamHealth> self, std::size_t index);
    static Awaitable<void> run(std::shared_ptr<UpstreamHealth> self);

    asio::any_io_executor executor_;
    std::vector<Watched> watched_;
    UpstreamQuestion question_;
    std::chrono::milliseconds timeout_;
    std::chrono::seconds interval_;
    asio::steady_timer timer_;
    bool stopped_ = false;
};

/// The question that a probe asks: "." for NS, every other name for A (network 1.3).
/// `invalid_argument` for what is no name.
Result<UpstreamQuestion> probe_question(std::string_view name);

}  // namespace opensandbox::egress::dns
