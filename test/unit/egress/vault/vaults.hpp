#pragma once

#include "egress/vault/vault.hpp"
#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

/// Vaults written as the documents of the API.
namespace opensandbox::egress::test {

/// Single quotes instead of double ones, for documents within a test's text.
inline std::string json(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c == '\'') c = '"';
    }
    return out;
}

inline std::string credential(std::string_view name, std::string_view value) {
    return "{'name':'" + std::string(name) + "','source':{'value':'" + std::string(value) + "'}}";
}

inline std::string binding(std::string_view name, std::string_view match, std::string_view auth) {
    return "{'name':'" + std::string(name) + "','match':{" + std::string(match) + "},'auth':{" +
           std::string(auth) + "}}";
}

/// A policy that allows everything that the tests bind.
inline const EffectivePolicy& open_policy() {
    static const EffectivePolicy kPolicy(
        {}, policy({"allow *.example.com", "allow *.example.org", "allow example.com"}));
    return kPolicy;
}

inline std::string document(std::string_view credentials, std::string_view bindings) {
    return json("{'credentials':[" + std::string(credentials) + "],'bindings':[" +
                std::string(bindings) + "]}");
}

inline Result<VaultStatePtr> create(Vault& vault, std::string_view credentials,
                                    std::string_view bindings,
                                    const EffectivePolicy& rules = open_policy()) {
    Result<VaultCreate> parsed = parse_vault_create(document(credentials, bindings));
    if (!parsed) return parsed.error();
    return vault.create(std::move(*parsed), rules);
}

/// A vault with these documents in force.
inline std::shared_ptr<const ActiveVault> active(std::string_view credentials,
                                                 std::string_view bindings) {
    Vault vault((VaultSettings()));
    const auto made = create(vault, credentials, bindings);
    INFO((made ? std::string() : made.error().message()));
    REQUIRE(made.has_value());
    return vault.active();
}

}  // namespace opensandbox::egress::test
