#pragma once

#include "egress/rules/learned_addresses.hpp"
#include "net/conntrack.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace opensandbox::egress::rules {

/// A socket for connection tracking that jobs on several threads take in turns.
class SharedTracking {
  public:
    explicit SharedTracking(net::ConnectionTracking tracking) : tracking_(std::move(tracking)) {}

    template <class Work>
    auto use(const Work& work) {
        const std::lock_guard lock(mutex_);
        return work(tracking_);
    }

  private:
    std::mutex mutex_;
    net::ConnectionTracking tracking_;
};

/// Ends the connections of a sandbox that the rules no longer allow: those that are open go on past
/// the rules until then. To be run after each change that takes something away, also when it ended
/// in an error: TCP gets a reset with its next packet, UDP is refused. Others go on. Looks at all
/// connections of the namespace, 3 to 25 ms: for a thread other than the event loop's. Run it again
/// when it fails.
///
/// Judges by what was allowed when it was made. Of what can have been opened since then, by what
/// was allowed since, it must not judge: list(), and then remove_from() of one made after that.
class [[nodiscard]] ConnectionCut {
  public:
    ConnectionCut(std::shared_ptr<SharedTracking> tracking, std::vector<IpAddress> sources,
                  std::shared_ptr<const PolicyRules> rules, std::vector<LearnedKey> learned);
    /// The same for all connections that carry this mark.
    ConnectionCut(std::shared_ptr<SharedTracking> tracking, std::uint32_t mark,
                  std::shared_ptr<const PolicyRules> rules, std::vector<LearnedKey> learned);
    /// All connections of these addresses, whatever the rules say.
    ConnectionCut(std::shared_ptr<SharedTracking> tracking, std::vector<IpAddress> sources);

    using Connections = std::vector<net::TrackedConnection>;
    /// Those of the sandbox, at this moment. None where all are to be cut.
    Result<Connections> list() const;
    /// How many of these were cut; not counted (0) when it was all of the sandbox's.
    Result<std::size_t> remove_from(const Connections& connections) const;
    /// Both.
    Result<std::size_t> run() const;

  private:
    using Learned = std::unordered_set<LearnedKey, LearnedKeyHash>;

    [[nodiscard]] bool allowed(const net::TrackedConnection& connection,
                               const Learned& learned) const;

    std::shared_ptr<SharedTracking> tracking_;
    std::vector<IpAddress> sources_;
    std::uint32_t mark_ = 0;  ///< 0: by sources
    std::shared_ptr<const PolicyRules> rules_;
    std::vector<LearnedKey> learned_;
};

}  // namespace opensandbox::egress::rules
