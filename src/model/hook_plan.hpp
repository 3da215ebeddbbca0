#pragma once

#include "base/error.hpp"
#include "model/hook_schedule.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::model {

/// A command that the sandbox runs by itself.
struct PlannedHook {
    std::string name;
    std::vector<std::string> command;  ///< argv, not empty
    std::chrono::seconds timeout;
};

struct ScheduledHook {
    PlannedHook hook;
    Schedule schedule;
};

/// What OPENSANDBOX_LIFECYCLE asks for (lifecycle 2.1).
struct HookPlan {
    std::optional<PlannedHook> pre_start;
    std::vector<ScheduledHook> periodic;

    static constexpr std::chrono::seconds kDefaultPreStartTimeout{300};
    static constexpr std::chrono::seconds kDefaultPeriodicTimeout{60};

    /// Empty text is an empty plan. invalid_argument names the member.
    static Result<HookPlan> parse(std::string_view text);
};

}  // namespace opensandbox::model
