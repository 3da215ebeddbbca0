#include "egress/guard/api.hpp"
#include "egress/guard/reply.hpp"
#include "egress/policy/policy_status.hpp"

namespace opensandbox::egress {

namespace {

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

http::Response Api::policy_reply(const Result<PolicyPtr>& changed, std::string_view reason) const {
    if (!changed) return text_error(changed.error());
    PolicyStatus status = status_of((*changed)->user(), services_.enforcement_mode);
    status.reason = reason;
    return http::json_response(200, to_json(status));
}

Awaitable<http::Response> Api::answer_policy(http::Exchange& exchange) {
    const std::string method = exchange.request().method;
    if (method == "GET") {
        const PolicyPtr policy = services_.policies->current();
        PolicyStatus status = status_of(policy->user(), services_.enforcement_mode);
        status.policy = &policy->user();
        co_return http::json_response(200, to_json(status));
    }
    const bool replace = method == "POST" || method == "PUT";
    if (!replace && method != "PATCH" && method != "DELETE") {
        co_return method_not_allowed("GET, POST, PUT, PATCH, DELETE");
    }
    Result<std::string> body = co_await read_cut(exchange.body(), kMaxApiBody);
    if (!body) co_return text_error(400, "read body: " + body.error().message());
    if (replace) co_return co_await replace_policy(std::move(*body));
    if (method == "PATCH") co_return co_await patch_policy(std::move(*body));
    co_return co_await delete_rules(std::move(*body));
}

Awaitable<http::Response> Api::replace_policy(std::string body) {
    const Result<Policy> parsed = parse_policy(body);
    if (!parsed) co_return text_error(parsed.error());
    PolicyStore::Edit edit = [&parsed](const Policy&) { return std::optional<Policy>(*parsed); };
    const Result<PolicyPtr> changed = co_await services_.policies->change(std::move(edit));
    if (!changed || !is_blank(body)) co_return policy_reply(changed);
    // The contract's reply to an empty body names no enforcement mode.
    PolicyStatus status = status_of((*changed)->user(), {});
    status.reason = kReasonReset;
    co_return http::json_response(200, to_json(status));
}

Awaitable<http::Response> Api::patch_policy(std::string body) {
    const Result<std::vector<PolicyRule>> rules = parse_patch(body);
    if (!rules) co_return text_error(rules.error());
    PolicyStore::Edit edit = [&rules](const Policy& user) {
        return std::optional<Policy>(merge(user, *rules));
    };
    const Result<PolicyPtr> changed = co_await services_.policies->change(std::move(edit));
    co_return policy_reply(changed);
}

Awaitable<http::Response> Api::delete_rules(std::string body) {
    const Result<std::vector<std::string>> targets = parse_delete(body);
    if (!targets) co_return text_error(targets.error());
    bool found = false;
    PolicyStore::Edit edit = [&](const Policy& user) -> std::optional<Policy> {
        Removal removal = remove(user, *targets);
        found = removal.removed > 0;
        if (!found) return std::nullopt;
        return std::move(removal.policy);
    };
    const Result<PolicyPtr> changed = co_await services_.policies->change(std::move(edit));
    co_return policy_reply(changed, found || !changed ? std::string_view() : kReasonNoTarget);
}

}  // namespace opensandbox::egress
