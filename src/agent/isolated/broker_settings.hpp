#pragma once

#include "agent/process/environment.hpp"

#include <sys/types.h>

#include <string>
#include <string_view>

namespace opensandbox::agent {

/// The agent's first request to the broker: POST with encode(BrokerSettings).
inline constexpr const char* kBrokerSettingsTarget = "/settings";

/// What an agent tells its broker about itself.
struct BrokerSettings {
    uid_t uid = 0;  ///< whose the runs of sessions are
    gid_t gid = 0;
    Environment::Pairs environment;  ///< of these runs; at most 10,000 variables
};

/// "uid", "gid" and "NAME=value" for each variable, every one followed by a NUL.
std::string encode(const BrokerSettings& settings);
/// `invalid_argument` says what is wrong. Pure.
Result<BrokerSettings> parse_broker_settings(std::string_view text);

}  // namespace opensandbox::agent
