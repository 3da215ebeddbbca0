#pragma once

#include "model/json_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Commands that a sandbox runs by itself (lifecycle 2.1).
namespace opensandbox::model {

/// Before the entrypoint.
struct PreStartHook {
    std::vector<std::string> command;
    std::optional<std::int64_t> timeout_seconds;  ///< 1..10800
};

/// Again and again.
struct PeriodicHook {
    std::string name;
    std::string schedule;
    std::vector<std::string> command;
    std::optional<std::int64_t> timeout_seconds;  ///< 1..300
};

struct LifecycleHooks {
    std::optional<PreStartHook> pre_start;
    std::vector<PeriodicHook> periodic;
};

/// The value of OPENSANDBOX_LIFECYCLE, which the agent reads.
std::string to_json(const LifecycleHooks& hooks);

}  // namespace opensandbox::model
