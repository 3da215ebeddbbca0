#pragma once

#include "telemetry/histogram.hpp"

#include <array>
#include <cstdint>

namespace opensandbox::egress::dns {

/// Upper bounds in seconds of Statistics::forwarded_seconds.
inline constexpr std::array<double, 14> kForwardedBounds{
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/// Counted since the proxy was made.
struct Statistics {
    std::uint64_t queries = 0;            ///< all that came in, over UDP and TCP
    std::uint64_t malformed = 0;          ///< dropped or answered FORMERR, NOTIMP
    std::uint64_t denied = 0;             ///< by policy, a limit, the type or rebinding protection
    std::uint64_t cache_hits = 0;         ///< answered from the cache
    std::uint64_t forwarded = 0;          ///< answered by way of an upstream
    std::uint64_t shared = 0;             ///< of those, that waited for an equal question
    std::uint64_t failed = 0;             ///< SERVFAIL: no upstream answered
    std::uint64_t learn_failures = 0;     ///< SERVFAIL: the addresses could not be opened
    std::uint64_t rebinding_removed = 0;  ///< addresses taken out of answers
    std::uint64_t truncated = 0;          ///< answers cut for UDP
    std::uint64_t overload_dropped = 0;   ///< too many in flight
    /// egress.dns.query.duration of the contract: forwarded queries, failures included.
    telemetry::Histogram forwarded_seconds{kForwardedBounds};
};

}  // namespace opensandbox::egress::dns
