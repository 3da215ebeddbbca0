#include "model/hook_plan.hpp"

#include "json/document.hpp"

namespace opensandbox::model {

namespace {

constexpr std::size_t kMaxText = 256 * 1024;
constexpr std::size_t kMaxPeriodic = 64;

Error refuse(const std::string& where, std::string_view rule) {
    return {ErrorCode::invalid_argument, "lifecycle." + where + ": " + std::string(rule)};
}

Result<PlannedHook> parse_hook(const std::string& where, const json::value& value,
                               std::chrono::seconds timeout, std::int64_t longest) {
    if (!value.is_object()) return refuse(where, "must be an object");
    const json::object& object = value.get_object();
    auto name = json::get_string(object, "name");
    auto command = json::get_strings(object, "command");
    auto seconds = json::get_integer(object, "timeoutSeconds");
    if (!name) return refuse(where, name.error().message());
    if (!command || !*command || (*command)->empty() || (*command)->front().empty()) {
        return refuse(where + ".command", "must name a program");
    }
    if (!seconds || (*seconds && (**seconds < 1 || **seconds > longest))) {
        return refuse(where + ".timeoutSeconds", "must be from 1 to " + std::to_string(longest));
    }
    if (*seconds) timeout = std::chrono::seconds(**seconds);
    return PlannedHook(name->value_or(where), std::move(**command), timeout);
}

Result<ScheduledHook> parse_periodic(const std::string& where, const json::value& value) {
    auto hook = parse_hook(where, value, HookPlan::kDefaultPeriodicTimeout, 300);
    if (!hook) return hook.error();
    auto text = json::get_string(value.get_object(), "schedule");
    if (!text || !*text) return refuse(where + ".schedule", "must be a string");
    auto schedule = Schedule::parse(**text);
    if (!schedule) return schedule.error().within("lifecycle." + where + ".schedule");
    return ScheduledHook(std::move(*hook), std::move(*schedule));
}

}  // namespace

Result<HookPlan> HookPlan::parse(std::string_view text) {
    HookPlan plan;
    if (text.empty()) return plan;
    if (text.size() > kMaxText) return refuse("hooks", "longer than 256 KiB");
    auto document = json::parse(text);
    if (!document) return document.error().within("lifecycle");
    if (!document->is_object()) {
        return Error(ErrorCode::invalid_argument, "lifecycle: must be an object");
    }
    const json::object& object = document->get_object();
    if (const json::value* before = json::find(object, "preStart")) {
        auto hook = parse_hook("preStart", *before, kDefaultPreStartTimeout, 10'800);
        if (!hook) return hook.error();
        plan.pre_start = std::move(*hook);
    }
    const json::value* periodic = json::find(object, "periodic");
    if (!periodic) return plan;
    if (!periodic->is_array() || periodic->get_array().size() > kMaxPeriodic) {
        return refuse("periodic", "must be a list of at most 64");
    }
    for (const json::value& item : periodic->get_array()) {
        const std::string where = "periodic[" + std::to_string(plan.periodic.size()) + "]";
        auto hook = parse_periodic(where, item);
        if (!hook) return hook.error();
        plan.periodic.push_back(std::move(*hook));
    }
    return plan;
}

}  // namespace opensandbox::model
