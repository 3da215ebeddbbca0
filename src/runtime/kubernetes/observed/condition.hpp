#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::kubernetes {

/// An entry of status.conditions.
struct Condition {
    std::string type;
    std::string status = "True";
    std::string reason;
    std::string message;
    std::optional<Timestamp> last_transition;

    bool operator==(const Condition&) const = default;
};
using Conditions = std::vector<Condition>;

/// Of a status; none where there is no list. `invalid_argument` names the member.
Result<Conditions> read_conditions(const json::object& status);
json::array write_conditions(const Conditions& conditions);

/// Null when there is none of this type.
const Condition* find_condition(const Conditions& conditions, std::string_view type);

}  // namespace opensandbox::runtime::kubernetes
