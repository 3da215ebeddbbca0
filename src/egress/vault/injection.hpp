#pragma once

#include "egress/vault/binding.hpp"
#include "egress/vault/literal_replacer.hpp"
#include "egress/vault/redactor.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress {

struct HeaderField {
    std::string name;
    std::string value;
};

/// A request as the interceptor has it; the views must live through the call.
struct VaultRequest {
    std::string_view scheme;  ///< "https" or "http"
    /// Whom the request really goes to: the name that the upstream's certificate was checked for,
    /// equal to SNI and Host; over plain HTTP, the name that the address was learned from. Never a
    /// Host header that nothing vouches for.
    std::string_view host;
    std::uint16_t port = 0;
    std::string_view method;
    std::string_view target;  ///< raw path and query: "/v1/items?x=1"
    std::span<const HeaderField> headers;
};

/// What is to become of it. Holds secrets: they are wiped with it.
struct Injection {
    enum class Kind : std::uint8_t {
        unchanged,  ///< no binding matches: forward as it is
        rewritten,  ///< forward with the parts that are set below
        refused,    ///< answer the client with status and text, forward nothing
    };

    Injection() = default;
    Injection(Injection&&) = default;
    Injection& operator=(Injection&&) = default;
    ~Injection();

    Kind kind = Kind::unchanged;
    int status = 0;
    std::string text;
    std::string binding;                ///< its name, for the audit log
    std::optional<std::string> target;  ///< set when it changes
    /// All of them, set when any changes. Names of ours are canonical (X-Api-Key): HTTP/2 wants
    /// them in lower case.
    std::optional<std::vector<HeaderField>> headers;
    /// Set when the body is to go through it. Its length becomes another one: Content-Length is the
    /// caller's to set, or to leave out where the protocol allows.
    std::optional<StreamReplacer> body;
};

/// The bindings in force, made ready for requests. Immutable; safe to use from several threads. A
/// request that began with one ends with it.
class ActiveVault {
  public:
    /// Bindings were checked (binding_rules.hpp).
    ActiveVault(const std::vector<Credential>& credentials, std::vector<Binding> bindings);

    /// Whether a request to the host may match, whatever its method and path.
    [[nodiscard]] bool concerns(std::string_view scheme, std::uint16_t port,
                                std::string_view host) const;
    [[nodiscard]] Injection inject(const VaultRequest& request) const;
    /// For the response to any request.
    [[nodiscard]] const Redactor& redactor() const { return redactor_; }

  private:
    using Replacements = std::shared_ptr<const LiteralReplacements>;
    struct Header {
        std::string name;
        SecretPtr value;
    };
    struct Prepared {
        Binding binding;
        std::vector<Header> headers;
        Replacements url;  ///< of paths
        Replacements query;
        Replacements header;
        Replacements json;
        Replacements form;
        Replacements plain;
    };
    using Hosts = std::unordered_map<std::string, std::vector<std::size_t>>;
    struct Selection {
        const Prepared* binding = nullptr;
        bool ambiguous = false;
        bool limited_paths = false;  ///< some binding of the host is for a part of its paths only
    };

    [[nodiscard]] Selection select(const VaultRequest& request, std::string_view host) const;
    void consider(const Hosts& hosts, const std::string& host, const VaultRequest& request,
                  Selection& selection) const;

    std::vector<Prepared> bindings_;
    Hosts exact_;
    Hosts wildcard_;
    Redactor redactor_;
};

}  // namespace opensandbox::egress
