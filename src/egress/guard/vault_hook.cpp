#include "egress/guard/vault_hook.hpp"

#include "base/log.hpp"

#include <utility>

namespace opensandbox::egress {

namespace {

/// Overwrites the copies of fields that the vault was shown or gave.
struct WipedFields {
    std::vector<HeaderField> fields;
    ~WipedFields() {
        for (HeaderField& field : fields)
            wipe(field.value);
    }
};

/// The answer's fields without secrets.
void redact_fields(const ActiveVault& vault, http::Fields& fields) {
    http::Fields clean;
    for (const auto& [name, value] : fields) {
        auto redacted = vault.redactor().redact(name, value);
        clean.add(name, redacted ? *redacted : value);
    }
    fields = std::move(clean);
}

}  // namespace

RequestTreatment VaultHook::on_request(const OutgoingRequest& request) {
    RequestTreatment treatment;
    const auto vault = vault_.active();
    if (!vault) return treatment;
    WipedFields given;
    for (const auto& [name, value] : request.fields)
        given.fields.emplace_back(name, value);
    VaultRequest asked;
    asked.scheme = request.scheme;
    asked.host = request.host;
    asked.port = request.port;
    asked.method = request.method;
    asked.target = request.target;
    asked.headers = given.fields;
    Injection injection = vault->inject(asked);
    treatment.redact = [vault](http::Fields& fields) { redact_fields(*vault, fields); };
    if (injection.kind == Injection::Kind::refused) {
        treatment.refusal.emplace(injection.status, injection.text);
        return treatment;
    }
    if (injection.kind == Injection::Kind::unchanged) return treatment;
    log::debug("credential used", {{"binding", injection.binding}, {"host", request.host}});
    if (injection.target) request.target = *injection.target;
    if (injection.headers) {
        http::Fields fields;
        for (const HeaderField& field : *injection.headers)
            fields.add(field.name, field.value);
        request.fields = std::move(fields);
    }
    if (injection.body) {
        auto replacer = std::make_shared<StreamReplacer>(std::move(*injection.body));
        treatment.rewrite_body = [replacer](std::string body) -> std::optional<std::string> {
            std::string out;
            replacer->feed(body, out);
            replacer->finish(out);
            wipe(body);
            return out;
        };
    }
    return treatment;
}

}  // namespace opensandbox::egress
