#pragma once

#include <chrono>

namespace opensandbox::sdk {

/// When a request is sent again. Never more often than is harmless:
/// - any request, when no connection could be made (`unavailable` with status 0): it was not sent;
/// - GET, HEAD, PUT and DELETE, when the server answers 429, 502 or 503 or the connection breaks;
/// - creating a sandbox, when the answer is 429 or 503 and says by `Retry-After` when to come back:
///   its Idempotency-Key makes one sandbox of both.
/// Streams that have begun are not repeated.
struct RetryPolicy {
    /// Every request once.
    static RetryPolicy none() { return RetryPolicy(1); }

    /// How often a request is sent at most, the first time included; 1 to 100.
    unsigned attempts = 3;
    /// The pause before the second attempt; doubled before each further one. At least 1 ms.
    std::chrono::milliseconds first_delay{500};
    /// No pause is longer than this, other than by `Retry-After`.
    std::chrono::milliseconds longest_delay{8'000};
    /// How much of a pause is left to chance, so that clients do not come back all at once: 0
    /// (none) to 1 (all of it).
    double jitter = 0.25;
    /// A `Retry-After` up to this is waited for in place of the pause; a longer one ends the
    /// attempts, and Error::retry_after() tells it.
    std::chrono::milliseconds longest_retry_after{60'000};
    /// Whether a server that cannot be reached is tried again.
    bool unreachable = true;
};

}  // namespace opensandbox::sdk
