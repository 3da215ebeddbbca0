#include "egress/rules/connection_cut.hpp"

#include <netinet/in.h>

namespace opensandbox::egress::rules {

namespace {

constexpr std::uint16_t dns_port = 53;

/// Queries for names go to our own resolver whatever the policy says.
bool is_query(const net::TrackedConnection& connection) {
    return connection.destination_translated && connection.destination_port == dns_port &&
           (connection.protocol == IPPROTO_UDP || connection.protocol == IPPROTO_TCP);
}

}  // namespace

ConnectionCut::ConnectionCut(std::shared_ptr<SharedTracking> tracking,
                             std::vector<IpAddress> sources,
                             std::shared_ptr<const PolicyRules> rules,
                             std::vector<LearnedKey> learned)
    : tracking_(std::move(tracking)),
      sources_(std::move(sources)),
      rules_(std::move(rules)),
      learned_(std::move(learned)) {}

ConnectionCut::ConnectionCut(std::shared_ptr<SharedTracking> tracking, std::uint32_t mark,
                             std::shared_ptr<const PolicyRules> rules,
                             std::vector<LearnedKey> learned)
    : tracking_(std::move(tracking)),
      mark_(mark),
      rules_(std::move(rules)),
      learned_(std::move(learned)) {}

ConnectionCut::ConnectionCut(std::shared_ptr<SharedTracking> tracking,
                             std::vector<IpAddress> sources)
    : tracking_(std::move(tracking)), sources_(std::move(sources)) {}

bool ConnectionCut::allowed(const net::TrackedConnection& connection,
                            const Learned& learned) const {
    if (is_query(connection)) return true;
    const auto verdict = judge(
        *rules_, connection.destination, connection.protocol, connection.destination_port,
        [&](const Scope& scope) { return learned.contains({connection.destination, scope}); });
    // One that was opened before the interceptor was there passes it by.
    if (verdict == Judgement::intercepted) return connection.destination_translated;
    return verdict == Judgement::allowed;
}

Result<std::size_t> ConnectionCut::cut_from(net::ConnectionTracking& tracking,
                                            const std::vector<net::TrackedConnection>& connections,
                                            const Learned& learned) const {
    std::size_t cut = 0;
    for (const auto& connection : connections) {
        if (allowed(connection, learned)) continue;
        if (auto removed = tracking.remove(connection); !removed) return removed.error();
        ++cut;
    }
    return cut;
}

Result<std::size_t> ConnectionCut::run() const {
    const Learned learned(learned_.begin(), learned_.end());
    return tracking_->use([&](net::ConnectionTracking& tracking) -> Result<std::size_t> {
        if (mark_ != 0) {
            const auto connections = tracking.list_marked(mark_);
            if (!connections) return connections.error();
            return cut_from(tracking, *connections, learned);
        }
        std::size_t cut = 0;
        for (const auto& source : sources_) {
            if (!rules_) {
                if (auto removed = tracking.remove_all(source); !removed) return removed.error();
                continue;
            }
            const auto connections = tracking.list(source);
            if (!connections) return connections.error();
            const auto of_source = cut_from(tracking, *connections, learned);
            if (!of_source) return of_source;
            cut += *of_source;
        }
        return cut;
    });
}

}  // namespace opensandbox::egress::rules
