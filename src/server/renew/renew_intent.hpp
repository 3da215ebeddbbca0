#pragma once

#include "base/clock.hpp"

#include <optional>
#include <string>
#include <string_view>

/// What a gateway pushes when a sandbox is used (lifecycle 8). Pure.
namespace opensandbox::server {

struct RenewIntent {
    RenewIntent() = default;
    std::string sandbox_id;
    Timestamp observed_at{};
    std::string tenant;  ///< `namespace`; empty when it is not given
};

/// Older ones say nothing about now.
inline constexpr std::chrono::seconds kIntentLifetime{300};

/// `{"sandbox_id", "observed_at", "port"?, "request_uri"?, "namespace"?}`; empty for what is
/// malformed, older than 300 s, or longer than 64 KiB.
std::optional<RenewIntent> parse_renew_intent(std::string_view payload, Timestamp now);

}  // namespace opensandbox::server
