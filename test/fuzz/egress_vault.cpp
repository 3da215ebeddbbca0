// Vault documents, requests against them, and what is looked for in bodies.
#include "egress/vault/vault.hpp"
#include "egress/vault/vault_json.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace opensandbox::egress;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Policy policy;
    policy.rules.emplace_back(Action::allow, Target::parse("*.example.com").value());
    const EffectivePolicy effective({}, policy);
    Vault vault((VaultSettings()));
    (void)parse_vault_mutation(text);
    if (auto parsed = parse_vault_create(text)) {
        if (const auto made = vault.create(std::move(*parsed), effective)) {
            if (to_json(**made).back() != '\n') std::abort();
            VaultRequest request;
            request.scheme = "https";
            request.host = "a.example.com";
            request.port = 443;
            request.method = "GET";
            request.target = text;
            const Injection injection = vault.active()->inject(request);
            if ((injection.kind == Injection::Kind::refused) != (injection.status != 0))
                std::abort();
        }
    }
    // The first byte says how long the texts are that are looked for.
    const std::size_t length = size > 1 ? 1 + data[0] % (size - 1) : 0;
    if (length == 0) return 0;
    auto replacements = std::make_shared<LiteralReplacements>();
    replacements->add(std::string(text.substr(1, length)), "x");
    replacements->add(std::string(text.substr(1, (length + 1) / 2)), "yy");
    std::string whole;
    (void)replacements->replace(text, whole);
    std::string pieces;
    StreamReplacer stream(replacements);
    for (std::size_t i = 0; i < size; i += 3)
        stream.feed(text.substr(i, 3), pieces);
    stream.finish(pieces);
    if (pieces != whole) std::abort();
    return 0;
}
