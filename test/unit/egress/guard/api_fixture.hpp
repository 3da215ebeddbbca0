#pragma once

#include "egress/guard/api.hpp"
#include "support/catch_result.hpp"
#include "support/http_fixture.hpp"
#include "support/scratch_directory.hpp"
#include "unit/egress/guard/reply_contract.hpp"
#include "unit/egress/policy/policies.hpp"

#include <boost/asio/thread_pool.hpp>

#include <fstream>
#include <iterator>

namespace opensandbox::egress::test {

using http::test::Loop;
using http::test::TestServer;

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
    std::ofstream(path) << text;
}

/// The API over a policy, a vault and a log of denials, on a port of its own.
struct ApiWorld {
    explicit ApiWorld(std::string_view token = "") {
        PolicyStoreSettings settings;
        settings.overlay_directory = directory.path;
        settings.file = file;
        settings.max_rules = 3;
        store.emplace(loop.executor(), pool, load_policy(settings).value());
        PolicyFollowers followers;
        followers.covered = [this](const EffectivePolicy& policy) {
            return vault.check_policy(policy);
        };
        followers.enforce = [this](const PolicyPtr& policy) -> Status {
            enforced.push_back(mode_of(policy->user()));
            if (fail_enforcing-- > 0) return Error(ErrorCode::io, "no");
            return {};
        };
        store->follow(std::move(followers));
        ApiServices services;
        services.policies = &*store;
        services.vault = &vault;
        services.denials = &denials;
        services.token = token;
        services.enforcement_mode = "dns+nft";
        services.conditions = [this] { return conditions; };
        services.vault_requires_tls = true;
        services.unhealthy = [this] { return unhealthy; };
        services.metrics = [] { return std::string("a 1\n"); };
        services.mark_vault = [this](bool held) -> Awaitable<Status> {
            if (fail_marking) co_return Error(ErrorCode::io, "no room");
            vault_steps.push_back(held ? "held" : "not held");
            co_return Status();
        };
        services.vault_changed = [this] { vault_steps.push_back("changed"); };
        api.emplace(std::move(services));
        conditions.api_token = conditions.interception = conditions.ready = true;
        conditions.filtering = true;
        server.emplace(loop, [this](http::Exchange& exchange) { return api->handle(exchange); });
    }

    /// The whole answer to one request, lines ended by \n only. It must be as specs/egress.yaml has
    /// it.
    std::string ask(std::string_view method, std::string_view target, std::string_view body = "",
                    std::string_view fields = "") {
        std::string bytes = std::string(method) + " " + std::string(target) +
                            " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + std::string(fields) +
                            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                            std::string(body);
        std::string answer;
        loop.run(
            [&]() -> Awaitable<void> { answer = co_await http::test::talk(server->port, bytes); });
        std::erase(answer, '\r');
        CHECK(breach_of_contract(method, target, answer) == "");
        return answer;
    }

    test_support::ScratchDirectory directory;
    std::filesystem::path file = directory.path / "policy.json";
    Loop loop;
    asio::thread_pool pool{1};
    std::optional<PolicyStore> store;
    Vault vault{VaultSettings()};
    DenialLog denials{4};
    VaultConditions conditions;
    std::optional<std::string> unhealthy;
    std::vector<std::string_view> enforced;
    int fail_enforcing = 0;
    std::vector<std::string> vault_steps;
    bool fail_marking = false;
    std::optional<Api> api;
    std::optional<TestServer> server;
};

inline std::string body_of(std::string_view answer) {
    return std::string(answer.substr(answer.find("\n\n") + 2));
}
inline std::string status_of_answer(std::string_view answer) {
    return std::string(answer.substr(9, 3));
}

}  // namespace opensandbox::egress::test
