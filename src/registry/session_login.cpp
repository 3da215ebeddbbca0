#include "image/budget.hpp"
#include "registry/authentication.hpp"
#include "registry/session.hpp"

#include <algorithm>

namespace opensandbox::registry {
namespace {

constexpr std::size_t kLargestAnswer = std::size_t{256} << 10;

std::string query_of(std::string_view realm, std::string_view service, std::string_view scope) {
    std::string query(realm);
    char separator = realm.find('?') == std::string_view::npos ? '?' : '&';
    auto add = [&](std::string_view name, std::string_view value) {
        if (value.empty()) return;
        query += separator + std::string(name) + "=" + http::percent_encode(value);
        separator = '&';
    };
    add("service", service);
    // Several scopes stand side by side, each in a parameter of its own.
    while (!scope.empty()) {
        std::string_view one = scope.substr(0, scope.find(' '));
        add("scope", one);
        scope.remove_prefix(std::min(one.size() + 1, scope.size()));
    }
    return query;
}

http::ClientRequest token_request(const Credential& credential, const Target& target,
                                  std::string_view service, std::string_view scope) {
    if (credential.identity_token.empty()) {
        http::ClientRequest request("GET", target.target);
        if (!credential.is_anonymous()) {
            request.head.fields.set("Authorization", basic_authorization(credential));
        }
        return request;
    }
    http::ClientRequest request("POST", target.target);
    request.head.fields.set("Content-Type", "application/x-www-form-urlencoded");
    request.content =
        "grant_type=refresh_token&client_id=opensandbox&service=" + http::percent_encode(service) +
        "&scope=" + http::percent_encode(scope) +
        "&refresh_token=" + http::percent_encode(credential.identity_token);
    return request;
}

}  // namespace

Awaitable<Status> Session::log_in(http::ResponseHead refusal) {
    std::vector<Challenge> offered;
    for (const auto& [name, value] : refusal.fields) {
        if (!http::equal_ignoring_case(name, "WWW-Authenticate")) continue;
        auto challenges = parse_challenges(value);
        if (!challenges) co_return challenges.error();
        offered.insert(offered.end(), challenges->begin(), challenges->end());
    }
    auto bearer = std::ranges::find(offered, "bearer", &Challenge::scheme);
    if (bearer != offered.end()) {
        co_return co_await fetch_token(std::move(*bearer));
    }
    if (std::ranges::find(offered, "basic", &Challenge::scheme) == offered.end()) {
        co_return Error(ErrorCode::unauthenticated,
                        "it asks for a login and says no way that is known here");
    }
    if (credential_.username.empty()) {
        co_return Error(ErrorCode::unauthenticated, "it asks for a user and a password");
    }
    authorization_ = basic_authorization(credential_);
    co_return Status();
}

Awaitable<Status> Session::fetch_token(Challenge challenge) {
    std::string service(challenge.parameter("service"));
    std::string scope = scope_.empty() ? std::string(challenge.parameter("scope")) : scope_;
    std::string url(challenge.parameter("realm"));
    if (credential_.identity_token.empty()) url = query_of(url, service, scope);
    auto target = wire_->resolve(url, *base_);
    if (!target) co_return target.error().within("token server");
    std::string host = target->origin.host;
    http::ClientRequest request = token_request(credential_, *target, service, scope);
    auto response = co_await ask(std::move(target->origin), std::move(request));
    if (!response) co_return response.error().within("token server");
    auto body = co_await read_document(*this, **response, kLargestAnswer);
    int status = (*response)->head().status;
    if (status == 401 || status == 403) {
        std::string who = credential_.username.empty() ? "this login" : "this user and password";
        if (credential_.is_anonymous()) who = "requests without a login";
        co_return Error(ErrorCode::unauthenticated, "token server " + host + " refuses " + who);
    }
    if (status != 200) {
        std::string reason = body ? reason_in(*body) : std::string();
        co_return Error(ErrorCode::bad_gateway, "token server " + host + ": status " +
                                                    std::to_string(status) +
                                                    (reason.empty() ? "" : ": " + reason));
    }
    if (!body) co_return body.error().within("token server");
    auto token = parse_token(*body);
    if (!token) co_return token.error();
    authorization_ = "Bearer " + token->value;
    expires_ = std::chrono::steady_clock::now() + token->lifetime;
    challenge_ = std::move(challenge);
    co_return Status();
}

}  // namespace opensandbox::registry
