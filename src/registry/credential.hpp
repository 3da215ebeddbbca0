#pragma once

#include <string>
#include <string_view>

namespace opensandbox::registry {

/// What opens a registry. Never logged, never part of an error.
struct Credential {
    std::string username;
    std::string password;
    std::string identity_token;  ///< for a token server, instead of user and password

    [[nodiscard]] bool is_anonymous() const {
        return username.empty() && password.empty() && identity_token.empty();
    }
};

/// The value of Authorization for basic authentication.
std::string basic_authorization(const Credential& credential);

}  // namespace opensandbox::registry
