#include "egress/vault/redactor.hpp"

#include "egress/vault/value_encoding.hpp"
#include "http/fields.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kShortest = 4;
constexpr std::string_view kInstead = "[REDACTED]";

constexpr std::array<std::string_view, 4> kFraming{"content-length", "transfer-encoding",
                                                   "connection", "upgrade"};

/// What standard base64 stands for; empty when it is none.
std::string decode_base64(std::string_view text) {
    std::string out;
    while (text.ends_with('='))
        text.remove_suffix(1);
    out.reserve(text.size());
    std::uint32_t bits = 0;
    unsigned held = 0;
    for (const char c : text) {
        constexpr std::string_view kDigits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const auto digit = kDigits.find(c);
        if (digit == kDigits.npos) {
            wipe(out);
            return out;
        }
        bits = (bits << 6) | static_cast<std::uint32_t>(digit);
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out += static_cast<char>((bits >> held) & 0xff);
    }
    return out;
}

/// The credentials that are sent as user names with passwords, in base64.
std::set<std::string> basic_credentials(const std::vector<Binding>& bindings) {
    std::set<std::string> names;
    for (const Binding& binding : bindings) {
        if (binding.auth.type != AuthType::basic) continue;
        for (const HeaderCredential& header : binding.auth.headers)
            names.insert(header.credential);
    }
    return names;
}

}  // namespace

Redactor::Redactor(const std::vector<Credential>& credentials,
                   const std::vector<Binding>& bindings) {
    auto secrets = std::make_shared<LiteralReplacements>();
    const auto hide = [&](std::string text) {
        if (text.size() >= kShortest) secrets->add(std::move(text), std::string(kInstead));
        wipe(text);
    };
    const std::set<std::string> basic = basic_credentials(bindings);
    for (const Credential& credential : credentials) {
        const std::string_view value = credential.secret->value();
        hide(std::string(value));
        hide(encode_for_url(value));
        hide(encode_for_form(value));
        hide(encode_for_json(value));
        if (!basic.contains(credential.name)) continue;
        std::string plain = decode_base64(value);
        const auto colon = plain.find(':');
        if (colon != std::string::npos) hide(plain.substr(colon + 1));
        hide(std::move(plain));
    }
    for (const Binding& binding : bindings) {
        for (const Substitution& substitution : binding.auth.substitutions) {
            hide(substitution.placeholder);
        }
    }
    secrets_ = std::move(secrets);
}

std::optional<std::string> Redactor::redact(std::string_view name, std::string_view value) const {
    const bool framing = std::ranges::any_of(
        kFraming, [&](std::string_view f) { return http::equal_ignoring_case(f, name); });
    return framing ? std::nullopt : redact(value);
}

std::optional<std::string> Redactor::redact(std::string_view text) const {
    std::string out;
    if (secrets_->replace(text, out) == 0) return std::nullopt;
    return out;
}

}  // namespace opensandbox::egress
