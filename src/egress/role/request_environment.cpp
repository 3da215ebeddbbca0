#include "egress/role/request_environment.hpp"

#include "egress/settings/table.hpp"

namespace opensandbox::egress {

std::map<std::string, std::string> sandbox_defaults(const EnvironmentLookup& operators) {
    std::map<std::string, std::string> defaults;
    for (const Setting& setting : settings()) {
        if (!setting.is_of_a_sandbox()) continue;
        if (setting.configuration == InConfiguration::reserved) continue;
        std::string name = setting.variable();
        if (auto value = operators(name)) defaults.emplace(std::move(name), std::move(*value));
    }
    return defaults;
}

Result<ParsedEnvironment> parse_request_environment(
    const std::map<std::string, std::string>& variables,
    const std::map<std::string, std::string>& defaults) {
    std::vector<std::string> ignored;
    std::map<std::string, std::string, std::less<>> taken(defaults.begin(), defaults.end());
    for (const auto& [name, value] : variables) {
        const Setting* setting = find_setting(name);
        const InRequest said = setting ? setting->request : InRequest::refused;
        if (setting && setting->is_of_a_sandbox()) {
            taken[name] = value;
        } else if (said == InRequest::host_wide) {
            ignored.push_back(name + ": holds for all sandboxes of this host; it is ignored");
        } else if (said == InRequest::policy) {
            return Error(ErrorCode::unsupported,
                         name + ": the host keeps the policies of its sandboxes");
        } else {
            return Error(ErrorCode::invalid_argument, name + ": must not be set for a sandbox");
        }
    }
    auto parsed = parse_environment([&](std::string_view name) -> std::optional<std::string> {
        const auto found = taken.find(name);
        if (found == taken.end()) return std::nullopt;
        return found->second;
    });
    if (!parsed) return parsed.error();
    parsed->warnings.insert(parsed->warnings.end(), ignored.begin(), ignored.end());
    return parsed;
}

}  // namespace opensandbox::egress
