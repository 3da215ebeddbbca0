#include "egress/vault/injection.hpp"

#include "egress/policy/target.hpp"
#include "egress/vault/header_names.hpp"
#include "egress/vault/request_path.hpp"
#include "egress/vault/value_encoding.hpp"
#include "http/fields.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

using http::equal_ignoring_case;

std::string_view path_of(std::string_view target) {
    return target.substr(0, target.find('?'));
}

Injection refused(const Binding& binding, std::string text) {
    Injection injection;
    injection.kind = Injection::Kind::refused;
    injection.status = 403;
    injection.text = std::move(text);
    injection.binding = binding.name;
    return injection;
}

SecretPtr header_value(AuthType type, std::string_view secret) {
    const std::string_view scheme = type == AuthType::bearer  ? "Bearer "
                                    : type == AuthType::basic ? "Basic "
                                                              : "";
    std::string value;
    value.reserve(scheme.size() + secret.size());
    value.append(scheme).append(secret);
    auto made = std::make_shared<const Secret>(value);
    wipe(value);
    return made;
}

std::string as_it_is(std::string_view value) {
    return std::string(value);
}

/// The substitutions of one surface, their values encoded as it wants them.
std::shared_ptr<const LiteralReplacements> prepare(const std::vector<Substitution>& substitutions,
                                                   const std::vector<Credential>& credentials,
                                                   bool Substitution::* surface,
                                                   std::string (*encode)(std::string_view)) {
    auto made = std::make_shared<LiteralReplacements>();
    for (const Substitution& substitution : substitutions) {
        if (!(substitution.*surface)) continue;
        const auto credential =
            std::ranges::find(credentials, substitution.credential, &Credential::name);
        if (credential == credentials.end()) continue;
        made->add(substitution.placeholder, encode(credential->secret->value()));
    }
    return made;
}

std::string header_of(std::span<const HeaderField> headers, std::string_view name) {
    std::string all;
    for (const HeaderField& field : headers) {
        if (!equal_ignoring_case(field.name, name)) continue;
        if (!all.empty()) all += ',';
        all += field.value;
    }
    return lower_case(all);
}

/// "application/json; charset=utf-8" without its parameters.
std::string_view media_type(std::string_view value) {
    value = value.substr(0, value.find_first_of(";,"));
    const auto end = value.find_last_not_of(" \t");
    return end == value.npos ? std::string_view() : value.substr(0, end + 1);
}

/// Replaces every field of that name by one, in the place of the first.
void set_header(std::vector<HeaderField>& headers, const std::string& name,
                std::string_view value) {
    bool placed = false;
    std::erase_if(headers, [&](HeaderField& field) {
        if (!equal_ignoring_case(field.name, name)) return false;
        if (placed) return true;
        placed = true;
        field.name = name;
        field.value = value;
        return false;
    });
    if (!placed) headers.emplace_back(name, std::string(value));
}

/// Puts values into the headers; whether any changed.
bool substitute_headers(const LiteralReplacements& replacements,
                        std::vector<HeaderField>& headers) {
    bool changed = false;
    if (replacements.empty()) return changed;
    for (HeaderField& field : headers) {
        if (is_protected_header(field.name)) continue;
        std::string value;
        if (replacements.replace(field.value, value) == 0) continue;
        field.value.swap(value);
        changed = true;
    }
    return changed;
}

}  // namespace

Injection::~Injection() {
    if (target) wipe(*target);
    if (!headers) return;
    for (HeaderField& field : *headers)
        wipe(field.value);
}

ActiveVault::ActiveVault(const std::vector<Credential>& credentials, std::vector<Binding> bindings)
    : redactor_(credentials, bindings) {
    for (Binding& binding : bindings) {
        Prepared made;
        for (const HeaderCredential& header : binding.auth.headers) {
            const auto found = std::ranges::find(credentials, header.credential, &Credential::name);
            if (found == credentials.end()) continue;
            made.headers.push_back(
                Header{header.name, header_value(binding.auth.type, found->secret->value())});
        }
        const auto& list = binding.auth.substitutions;
        made.url = prepare(list, credentials, &Substitution::path, encode_for_url);
        made.query = prepare(list, credentials, &Substitution::query, encode_for_url);
        made.header = prepare(list, credentials, &Substitution::header, as_it_is);
        made.json = prepare(list, credentials, &Substitution::body, encode_for_json);
        made.form = prepare(list, credentials, &Substitution::body, encode_for_form);
        made.plain = prepare(list, credentials, &Substitution::body, as_it_is);
        for (const HostPattern& host : binding.match.hosts) {
            auto& of_host = (host.wildcard ? wildcard_ : exact_)[host.name];
            if (of_host.empty() || of_host.back() != bindings_.size()) {
                of_host.push_back(bindings_.size());
            }
        }
        made.binding = std::move(binding);
        bindings_.push_back(std::move(made));
    }
}

void ActiveVault::consider(const Hosts& hosts, const std::string& host, const VaultRequest& request,
                           Selection& selection) const {
    const auto found = hosts.find(host);
    if (found == hosts.end()) return;
    for (const std::size_t index : found->second) {
        const Prepared& candidate = bindings_[index];
        const BindingMatch& match = candidate.binding.match;
        if (!match.allows(request.scheme, request.port, request.method)) continue;
        const auto is_limited = [](const PathPattern& path) { return !path.is_everything(); };
        if (std::ranges::any_of(match.paths, is_limited)) selection.limited_paths = true;
        const std::string_view path = path_of(request.target);
        const bool hit = std::ranges::any_of(
            match.paths, [&](const PathPattern& pattern) { return pattern.matches(path); });
        if (!hit || selection.binding == &candidate) continue;
        if (selection.binding) selection.ambiguous = true;
        selection.binding = &candidate;
    }
}

ActiveVault::Selection ActiveVault::select(const VaultRequest& request,
                                           std::string_view host) const {
    Selection exact;
    consider(exact_, std::string(host), request, exact);
    Selection wider;
    for (auto dot = host.find('.'); dot != host.npos; dot = host.find('.', dot + 1)) {
        consider(wildcard_, std::string(host.substr(dot + 1)), request, wider);
    }
    Selection& selection = exact.binding ? exact : wider;
    selection.limited_paths = exact.limited_paths || wider.limited_paths;
    return selection;
}

bool ActiveVault::concerns(std::string_view scheme, std::uint16_t port,
                           std::string_view host) const {
    return std::ranges::any_of(bindings_, [&](const Prepared& prepared) {
        const BindingMatch& match = prepared.binding.match;
        return std::ranges::find(match.schemes, scheme) != match.schemes.end() &&
               std::ranges::find(match.ports, port) != match.ports.end() &&
               std::ranges::any_of(match.hosts,
                                   [&](const HostPattern& one) { return one.matches(host); });
    });
}

Injection ActiveVault::inject(const VaultRequest& request) const {
    std::string host = lower_case(request.host);
    if (host.ends_with('.')) host.pop_back();
    const Selection selection = select(request, host);
    if (!selection.binding) return {};
    const Prepared& chosen = *selection.binding;
    if (selection.ambiguous) return refused(chosen.binding, "credential binding ambiguous");
    const std::string_view path = path_of(request.target);
    // A path that a server may read as another one must not decide who gets a credential.
    if (selection.limited_paths && leaves_its_place(path)) {
        return refused(chosen.binding, "credential binding path ambiguous");
    }

    Injection out;
    out.kind = Injection::Kind::rewritten;
    out.binding = chosen.binding.name;
    std::string target;
    std::size_t replaced = chosen.url->replace(path, target);
    if (replaced > 0 && leaves_its_place(target)) {
        wipe(target);
        return refused(chosen.binding, "credential substitution makes an unsafe path");
    }
    replaced += chosen.query->replace(request.target.substr(path.size()), target);
    if (replaced > 0) out.target.emplace().swap(target);

    std::vector<HeaderField> headers(request.headers.begin(), request.headers.end());
    const bool substituted = substitute_headers(*chosen.header, headers);
    for (const Header& header : chosen.headers) {
        set_header(headers, header.name, header.value->value());
    }
    if (substituted || !chosen.headers.empty()) out.headers.emplace().swap(headers);

    if (chosen.plain->empty()) return out;
    const std::string coding = header_of(request.headers, "content-encoding");
    const std::string content_type = header_of(request.headers, "content-type");
    const std::string_view type = media_type(content_type);
    // Parts and messages with lengths of their own would no longer fit them.
    if ((!coding.empty() && coding != "identity") || type.starts_with("multipart/") ||
        type.starts_with("application/grpc")) {
        return out;
    }
    const bool json = type == "application/json" || type.ends_with("+json");
    const bool form = type == "application/x-www-form-urlencoded";
    out.body.emplace(json ? chosen.json : form ? chosen.form : chosen.plain);
    return out;
}

}  // namespace opensandbox::egress
