#pragma once

#include "opensandbox/error.hpp"
#include "opensandbox/retry.hpp"

#include <chrono>
#include <optional>
#include <string_view>

namespace opensandbox::sdk {

/// Why a request may be sent again.
enum class Repeatable : std::uint8_t {
    if_unsent,   ///< only while nothing of it was sent
    if_invited,  ///< carries an Idempotency-Key: also when the server names a time to come back
    always,      ///< its method is idempotent and its body is at hand
};

/// Null, or what is wrong with a policy.
std::optional<Error> refuse_policy(const RetryPolicy& policy);

/// The pause before the attempt after `attempts` failed ones; `chance` is from 0 to 1.
std::chrono::milliseconds retry_delay(const RetryPolicy& policy, unsigned attempts, double chance);

/// How long to wait before a request is sent again after `attempts` that ended with `error`; empty:
/// it is not.
std::optional<std::chrono::milliseconds> next_attempt(const RetryPolicy& policy,
                                                      Repeatable repeatable, unsigned attempts,
                                                      const Error& error, double chance);

/// Whether a request that failed so may have been carried out nevertheless.
bool may_have_happened(const Error& error);

/// The value of Retry-After: seconds, or a date of HTTP, which counts from `now` (0 when past).
/// Empty for anything else.
std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text,
                                                           std::chrono::sys_seconds now);

}  // namespace opensandbox::sdk
