#include "egress/rules/connection_cut.hpp"

#include "egress/rules/ports.hpp"

#include <netinet/in.h>

namespace opensandbox::egress::rules {

namespace {

/// Queries for names go to our own resolver whatever the policy says.
bool is_query(const net::TrackedConnection& connection) {
    return connection.destination_translated && connection.destination_port == kDnsPort &&
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

Result<ConnectionCut::Connections> ConnectionCut::list() const {
    return tracking_->use([&](net::ConnectionTracking& tracking) -> Result<Connections> {
        if (mark_ != 0) return tracking.list_marked(mark_);
        Connections all;
        if (!rules_) return all;
        for (const auto& source : sources_) {
            auto of_source = tracking.list(source);
            if (!of_source) return of_source.error();
            all.insert(all.end(), of_source->begin(), of_source->end());
        }
        return all;
    });
}

Result<std::size_t> ConnectionCut::remove_from(const Connections& connections) const {
    const Learned learned(learned_.begin(), learned_.end());
    return tracking_->use([&](net::ConnectionTracking& tracking) -> Result<std::size_t> {
        if (!rules_) {
            for (const auto& source : sources_)
                if (auto removed = tracking.remove_all(source); !removed) return removed.error();
            return 0;
        }
        std::size_t cut = 0;
        for (const auto& connection : connections) {
            if (allowed(connection, learned)) continue;
            if (auto removed = tracking.remove(connection); !removed) return removed.error();
            ++cut;
        }
        return cut;
    });
}

Result<std::size_t> ConnectionCut::run() const {
    const auto connections = list();
    if (!connections) return connections.error();
    return remove_from(*connections);
}

}  // namespace opensandbox::egress::rules
