#pragma once

#include "egress/dns/random.hpp"
#include "egress/dns/settings.hpp"
#include "egress/dns/upstream_connections.hpp"
#include "net/dns/records.hpp"

#include <memory>
#include <string>

namespace opensandbox::egress::dns {

/// A question as it goes to an upstream.
struct UpstreamQuestion {
    std::string name;  ///< wire form, lower case
    std::uint16_t type = 0;
    bool dnssec = false;
    bool checking_disabled = false;
};

/// One resolver that is asked: over UDP from a socket of its own for each question, so that its
/// port is as hard to guess as the id; over TCP what does not fit.
class Upstream : public std::enable_shared_from_this<Upstream> {
  public:
    Upstream(asio::any_io_executor executor, UpstreamServer server,
             const UpstreamSettings& settings);

    /// What the server says, whole, whatever its code; the answer belongs to the question.
    /// `timeout`, `unavailable`, `protocol`.
    static Awaitable<Result<net::dns::Response>> ask(std::shared_ptr<Upstream> self,
                                                     UpstreamQuestion question,
                                                     std::chrono::milliseconds timeout);
    /// Whether the server sends any reply to the question, over UDP.
    static Awaitable<bool> probe(std::shared_ptr<Upstream> self, UpstreamQuestion question,
                                 std::chrono::milliseconds timeout);
    void close();
    [[nodiscard]] const UpstreamServer& server() const { return server_; }

  private:
    struct Sent;
    using Clock = std::chrono::steady_clock;

    Sent make_message(const UpstreamQuestion& question, bool extended);
    static Awaitable<Result<std::string>> over_udp(std::shared_ptr<Upstream> self, Sent sent,
                                                   Clock::time_point end);
    static Awaitable<Result<std::string>> over_tcp(std::shared_ptr<Upstream> self, Sent sent,
                                                   Clock::time_point end);
    static Awaitable<Result<net::dns::Response>> ask_once(std::shared_ptr<Upstream> self,
                                                          UpstreamQuestion question, bool extended,
                                                          Clock::time_point end);

    asio::any_io_executor executor_;
    UpstreamServer server_;
    std::uint16_t udp_size_;
    bool mixed_case_;
    RandomSource random_;
    UpstreamConnections connections_;
};

}  // namespace opensandbox::egress::dns
