#include "opensandbox/egress.hpp"

#include "sdk/egress_exchange.hpp"
#include "sdk/wire_egress.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::string_view kTarget = "/policy";

Error nothing_given(std::string_view what) {
    return {ErrorCode::invalid_argument, "no " + std::string(what) + " is given"};
}

std::optional<Error> refuse(const std::vector<NetworkRule>& rules) {
    for (const auto& rule : rules) {
        if (rule.action != "allow" && rule.action != "deny") {
            return Error(ErrorCode::invalid_argument,
                         "action: '" + rule.action + "' is not accepted; use allow or deny");
        }
        if (rule.target.empty() && rule.ports.empty()) {
            return Error(ErrorCode::invalid_argument, "target: is empty, and there are no ports");
        }
    }
    return std::nullopt;
}

}  // namespace

Awaitable<Result<EgressStatus>> Egress::get() const {
    Call call("GET", std::string(kTarget));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_egress_status(reply->body, /*with_policy=*/true);
}

Awaitable<Result<EgressStatus>> Egress::patch(std::vector<NetworkRule> rules) const {
    if (rules.empty()) co_return nothing_given("rule");
    if (auto refused = refuse(rules)) co_return *refused;
    Call call("PATCH", std::string(kTarget), wire::encode_rules(rules));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_egress_status(reply->body, /*with_policy=*/false);
}

Awaitable<Result<EgressStatus>> Egress::remove(std::vector<std::string> targets) const {
    if (targets.empty()) co_return nothing_given("target");
    Call call("DELETE", std::string(kTarget), wire::encode_targets(targets));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_egress_status(reply->body, /*with_policy=*/false);
}

Awaitable<Result<EgressStatus>> Egress::replace(NetworkPolicy policy) const {
    if (auto refused = refuse(policy.egress)) co_return *refused;
    Call call("PUT", std::string(kTarget), wire::encode_policy(policy));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_egress_status(reply->body, /*with_policy=*/false);
}

}  // namespace opensandbox::sdk
