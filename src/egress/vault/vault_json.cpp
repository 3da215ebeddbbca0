#include "egress/vault/vault_json.hpp"

#include "base/json_string.hpp"

namespace opensandbox::egress {
namespace {

/// `[a,b]`; `append` writes one item.
template <class Items, class Append>
void append_list(std::string& out, const Items& items, const Append& append) {
    out += '[';
    bool first = true;
    for (const auto& item : items) {
        if (!first) out += ',';
        first = false;
        append(item);
    }
    out += ']';
}

void append_revision(std::string& out, std::uint64_t revision) {
    out += "\"revision\":" + std::to_string(revision);
}

void append_credential(std::string& out, const Credential& credential) {
    out += "{\"name\":";
    append_json_string(out, credential.name);
    out += ",\"sourceType\":";
    append_json_string(out, credential.source_type);
    out += ',';
    append_revision(out, credential.revision);
    out += '}';
}

void append_match(std::string& out, const BindingMatch& match) {
    const auto text = [&out](const std::string& item) { append_json_string(out, item); };
    const auto pattern = [&out](const auto& item) { append_json_string(out, item.text()); };
    out += "{\"schemes\":";
    append_list(out, match.schemes, text);
    out += ",\"ports\":";
    append_list(out, match.ports, [&out](std::uint16_t port) { append_integer(out, port); });
    out += ",\"hosts\":";
    append_list(out, match.hosts, pattern);
    out += ",\"methods\":";
    append_list(out, match.methods, text);
    out += ",\"paths\":";
    append_list(out, match.paths, pattern);
    out += '}';
}

/// Only an API key's header is told.
void append_auth(std::string& out, const BindingAuth& auth) {
    out += "{\"type\":";
    append_json_string(out, to_string(auth.type));
    if (auth.type == AuthType::api_key && !auth.headers.empty()) {
        out += ",\"name\":";
        append_json_string(out, auth.headers.front().name);
    }
    out += '}';
}

void append_binding(std::string& out, const Binding& binding, std::uint64_t revision) {
    out += "{\"name\":";
    append_json_string(out, binding.name);
    out += ',';
    append_revision(out, revision);
    out += ",\"match\":";
    append_match(out, binding.match);
    out += ",\"auth\":";
    append_auth(out, binding.auth);
    out += '}';
}

void append_credentials(std::string& out, const VaultState& state) {
    out += ",\"credentials\":";
    append_list(out, state.credentials, [&](const Credential& c) { append_credential(out, c); });
}

void append_bindings(std::string& out, const VaultState& state) {
    out += ",\"bindings\":";
    append_list(out, state.bindings,
                [&](const Binding& b) { append_binding(out, b, state.revision); });
}

std::string begin(const VaultState& state) {
    std::string out = "{";
    append_revision(out, state.revision);
    return out;
}

}  // namespace

std::string to_json(const VaultState& state) {
    std::string out = begin(state);
    append_credentials(out, state);
    append_bindings(out, state);
    return out + "}\n";
}

std::string credentials_json(const VaultState& state) {
    std::string out = begin(state);
    append_credentials(out, state);
    return out + "}\n";
}

std::string bindings_json(const VaultState& state) {
    std::string out = begin(state);
    append_bindings(out, state);
    return out + "}\n";
}

Result<std::string> credential_json(const VaultState& state, std::string_view name) {
    const Credential* found = state.credential(name);
    if (!found) return Error(ErrorCode::not_found, "credential not found");
    std::string out;
    append_credential(out, *found);
    return out + "\n";
}

Result<std::string> binding_json(const VaultState& state, std::string_view name) {
    const Binding* found = state.binding(name);
    if (!found) return Error(ErrorCode::not_found, "binding not found");
    std::string out;
    append_binding(out, *found, state.revision);
    return out + "\n";
}

}  // namespace opensandbox::egress
