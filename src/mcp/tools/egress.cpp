#include "opensandbox/egress.hpp"

#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/workspace.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

sdk::Egress egress_of(const Call& call) {
    return {call.workspace().server(), call.text("sandbox_id")};
}

json::object document(const sdk::EgressStatus& status) {
    json::array rules;
    for (const sdk::NetworkRule& rule : status.policy.egress) {
        json::object row;
        row["action"] = rule.action;
        if (!rule.target.empty()) row["target"] = rule.target;
        if (!rule.ports.empty()) row["ports"] = json::array(rule.ports.begin(), rule.ports.end());
        rules.emplace_back(std::move(row));
    }
    json::object policy;
    policy["default_action"] = status.policy.default_action;
    policy["egress"] = std::move(rules);
    json::object out;
    out["policy"] = std::move(policy);
    out["mode"] = status.mode;
    out["enforcement_mode"] = status.enforcement_mode;
    return out;
}

Awaitable<ToolResult> get_policy(Call& call) {
    auto status = co_await egress_of(call).get();
    if (!status) co_return status.error();
    co_return document(*status);
}

Awaitable<ToolResult> patch(Call& call) {
    std::vector<sdk::NetworkRule> rules;
    for (const json::value& row : call.arguments().at("rules").as_array()) {
        const json::object& rule = row.as_object();
        const json::value* target = json::find(rule, "target");
        rules.emplace_back(std::string(rule.at("action").as_string()),
                           target ? std::string(target->as_string()) : std::string());
        const json::value* ports = json::find(rule, "ports");
        if (!ports) continue;
        for (const json::value& port : ports->as_array())
            rules.back().ports.push_back(port.to_number<std::int64_t>());
    }
    if (rules.empty()) co_return invalid("rules", "expected at least one rule");
    const sdk::Egress egress = egress_of(call);
    auto patched = co_await egress.patch(std::move(rules));
    if (!patched) co_return patched.error();
    auto status = co_await egress.get();
    if (!status) co_return status.error();
    co_return document(*status);
}

json::object policy_output() {
    const json::object policy =
        Object()
            .required("default_action", schema::text(), "For what no rule names")
            .required("egress", schema::list_of(network_rule_schema()),
                      "The first rule that fits decides")
            .build(true);
    return Object()
        .required("policy", policy)
        .required("mode", schema::text())
        .required("enforcement_mode", schema::text())
        .build(true);
}

}  // namespace

void add_egress_tools(std::vector<Tool>& tools) {
    tools.push_back({"egress_get", "Network policy",
                     "What a sandbox may reach. Only one that was created with a network_policy "
                     "has a policy.",
                     Effect::reads, with_sandbox().build(), policy_output(), get_policy});
    tools.push_back(
        {"egress_patch", "Change the network policy",
         "Puts rules before the policy's others while the sandbox runs; one with the "
         "same target is replaced.",
         Effect::changes,
         with_sandbox().required("rules", schema::list_of(network_rule_schema())).build(),
         policy_output(), patch});
}

}  // namespace opensandbox::mcp
