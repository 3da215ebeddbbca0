#include "egress/vault/redactor.hpp"

#include "egress/vault/value_encoding.hpp"
#include "http/fields.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kShortest = 4;
constexpr std::string_view kInstead = "[REDACTED]";

constexpr std::array<std::string_view, 4> kFraming{"content-length", "transfer-encoding",
                                                   "connection", "upgrade"};

}  // namespace

Redactor::Redactor(const std::vector<Credential>& credentials,
                   const std::vector<Binding>& bindings) {
    auto secrets = std::make_shared<LiteralReplacements>();
    const auto hide = [&](std::string text) {
        if (text.size() >= kShortest) secrets->add(std::move(text), std::string(kInstead));
        wipe(text);
    };
    for (const Credential& credential : credentials) {
        const std::string_view value = credential.secret->value();
        hide(std::string(value));
        hide(encode_for_url(value));
        hide(encode_for_form(value));
        hide(encode_for_json(value));
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
