#include "egress/vault/binding_rules.hpp"

#include "base/json_string.hpp"
#include "egress/vault/binding_collisions.hpp"
#include "egress/vault/header_names.hpp"
#include "egress/vault/vault_documents.hpp"

#include <algorithm>
#include <string>

namespace opensandbox::egress {
namespace {

std::string json_quoted(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

Error wrong(const Binding& binding, const std::string& what) {
    return {ErrorCode::invalid_argument, "binding " + json_quoted(binding.name) + ": " + what};
}

const Credential* find(const std::vector<Credential>& credentials, std::string_view name) {
    const auto found = std::ranges::find(credentials, name, &Credential::name);
    return found == credentials.end() ? nullptr : &*found;
}

/// A credential that is to stand in a header must be able to.
Status check_reference(const Binding& binding, const std::string& name, bool in_header,
                       const std::vector<Credential>& credentials) {
    const Credential* credential = find(credentials, name);
    if (!credential) return wrong(binding, "unknown credential " + json_quoted(name));
    if (in_header && !is_header_value(credential->secret->value())) {
        return wrong(binding, "credential " + json_quoted(name) +
                                  " cannot stand in a header: it has line ends, control "
                                  "characters, or spaces at its ends");
    }
    return {};
}

Status check_references(const Binding& binding, const std::vector<Credential>& credentials) {
    for (const HeaderCredential& header : binding.auth.headers) {
        const Status known = check_reference(binding, header.credential, true, credentials);
        if (!known) return known;
    }
    for (const Substitution& substitution : binding.auth.substitutions) {
        const Status known =
            check_reference(binding, substitution.credential, substitution.header, credentials);
        if (!known) return known;
    }
    return {};
}

Status check_match(const Binding& binding, const VaultSettings& settings) {
    const BindingMatch& match = binding.match;
    for (const std::uint16_t port : match.ports) {
        if (std::ranges::find(settings.intercept_ports, port) == settings.intercept_ports.end()) {
            return wrong(binding, "port " + std::to_string(port) + " is not intercepted");
        }
    }
    const auto has = [](const auto& list, const auto& item) {
        return std::ranges::find(list, item) != list.end();
    };
    if (settings.credential_bound && has(match.schemes, "https") && !has(match.ports, kBoundPort)) {
        return wrong(binding, "https is intercepted at port 443 alone in mode credential-bound");
    }
    for (const HostPattern& host : match.hosts) {
        if (settings.passes_through && settings.passes_through(host)) {
            return wrong(binding, "connections to " + host.text() + " are not intercepted");
        }
    }
    if (!settings.require_scoped_match) return {};
    if (!match.methods_given) return wrong(binding, "match.methods must be given");
    if (!match.paths_given) return wrong(binding, "match.paths must be given");
    if (std::ranges::any_of(match.paths, &PathPattern::is_everything)) {
        return wrong(binding, "match.paths must not be every path (/*)");
    }
    return {};
}

/// Whether a wildcard rule holds all hosts of the wildcard `host`.
bool covers(const Target& target, const HostPattern& host) {
    if (target.kind() != Target::Kind::wildcard) return false;
    return target.name() == host.name || HostPattern(true, target.name()).matches(host.name);
}

bool is_allowed(const EffectivePolicy& policy, const HostPattern& host, std::uint16_t port) {
    if (!host.wildcard) {
        const Verdict verdict = policy.judge_name(host.name, Transport::tcp, port);
        return verdict.allowed && verdict.reason.rule;
    }
    for (const Rule& rule : policy.rules()) {
        if (!covers(rule.target, host)) continue;
        if (!rule.target.scope().covers(Transport::tcp, port)) continue;
        return rule.action == Action::allow;
    }
    return false;
}

}  // namespace

Status check_bindings(const std::vector<Binding>& bindings,
                      const std::vector<Credential>& credentials, const VaultSettings& settings) {
    if (bindings.size() > kMaxVaultItems) {
        return Error(ErrorCode::invalid_argument, "too many bindings");
    }
    for (const Binding& binding : bindings) {
        if (Status known = check_references(binding, credentials); !known) return known;
        if (Status fits = check_match(binding, settings); !fits) return fits;
    }
    if (const auto both = find_collision(bindings)) {
        return wrong(
            bindings[both->second],
            "a request may match binding " + json_quoted(bindings[both->first].name) + " as well");
    }
    return {};
}

Status check_coverage(const std::vector<Binding>& bindings, const EffectivePolicy& policy) {
    for (const Binding& binding : bindings) {
        for (const HostPattern& host : binding.match.hosts) {
            for (const std::uint16_t port : binding.match.ports) {
                if (is_allowed(policy, host, port)) continue;
                return wrong(binding, "host " + host.text() + " port " + std::to_string(port) +
                                          " is not allowed by an explicit egress rule");
            }
        }
    }
    return {};
}

}  // namespace opensandbox::egress
