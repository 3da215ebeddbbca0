#pragma once

#include "egress/vault/secret.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Which credential goes into which request (network contract 1.9).
namespace opensandbox::egress {

/// A secret under a name.
struct Credential {
    std::string name;
    std::string source_type = "inline";
    SecretPtr secret;
    std::uint64_t revision = 0;  ///< of the vault, when it was written
};

/// A host, or with `wildcard` all hosts below it, at any depth, without itself.
struct HostPattern {
    bool wildcard = false;
    std::string name;  ///< lower case, without "*."

    [[nodiscard]] bool matches(std::string_view host) const;
    [[nodiscard]] std::string text() const { return (wildcard ? "*." : "") + name; }
};

/// A path, or with `prefix` all that begin so.
struct PathPattern {
    PathPattern() = default;
    explicit PathPattern(std::string_view text);
    bool prefix = false;
    std::string path;  ///< without the `*`

    [[nodiscard]] bool matches(std::string_view raw_path) const;
    [[nodiscard]] bool is_everything() const { return prefix && path == "/"; }
    [[nodiscard]] std::string text() const { return path + (prefix ? "*" : ""); }
};

struct BindingMatch {
    std::vector<std::string> schemes;  ///< "https", "http"
    std::vector<std::uint16_t> ports;
    std::vector<HostPattern> hosts;
    std::vector<std::string> methods;  ///< upper case
    std::vector<PathPattern> paths;
    bool methods_given = false;  ///< not the default
    bool paths_given = false;

    /// All but host and path.
    [[nodiscard]] bool allows(std::string_view scheme, std::uint16_t port,
                              std::string_view method) const;
};

enum class AuthType : std::uint8_t { bearer, basic, api_key, custom_headers, passthrough };

/// As documents have it: "bearer", "basic", "apiKey", "customHeaders", "passthrough".
std::string_view to_string(AuthType type);

/// A header and whose value goes there.
struct HeaderCredential {
    std::string name;  ///< canonical
    std::string credential;
};

/// A placeholder in a request and whose value takes its place.
struct Substitution {
    std::string credential;
    std::string placeholder;
    bool path = false;
    bool query = false;
    bool header = false;
    bool body = false;
};

struct BindingAuth {
    AuthType type = AuthType::bearer;
    /// One for bearer and basic ("Authorization") and apiKey; none for passthrough.
    std::vector<HeaderCredential> headers;
    std::vector<Substitution> substitutions;
};

struct Binding {
    std::string name;
    BindingMatch match;
    BindingAuth auth;
};

}  // namespace opensandbox::egress
