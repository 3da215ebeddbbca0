#pragma once

#include "egress/vault/binding.hpp"
#include "egress/vault/literal_replacer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// Takes secrets out of responses: `[REDACTED]` stands in their place. What it looks for is every
/// credential, as it is and as it stands in URLs, forms and JSON texts, of basic ones the password
/// that it holds, and the placeholders.
/// Credentials of less than 4 bytes are left: half of every text would go. Immutable.
class Redactor {
  public:
    Redactor(const std::vector<Credential>& credentials, const std::vector<Binding>& bindings);

    /// The value without secrets; empty when it had none. Headers that say where a message ends
    /// stay as they are.
    [[nodiscard]] std::optional<std::string> redact(std::string_view name,
                                                    std::string_view value) const;
    /// For text in general, such as an error's.
    [[nodiscard]] std::optional<std::string> redact(std::string_view text) const;
    /// For a body in pieces (an addition to the contract); it must not be compressed, and its
    /// length changes.
    [[nodiscard]] StreamReplacer body() const { return StreamReplacer(secrets_); }

  private:
    std::shared_ptr<const LiteralReplacements> secrets_;
};

}  // namespace opensandbox::egress
