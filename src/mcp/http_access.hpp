#pragma once

#include "base/error.hpp"
#include "http/message.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::mcp {

/// Whether a listener on this address is reached from this machine only.
bool is_loopback(std::string_view host);

/// Who may talk to the HTTP transport.
class AccessRules {
  public:
    /// `host` is what is listened on; an empty token asks for none.
    AccessRules(std::string host, std::string token, std::vector<std::string> origins)
        : host_(std::move(host)), token_(std::move(token)), origins_(std::move(origins)) {}

    /// `unauthenticated` without the token. `permission_denied` for pages of foreign origins, and
    /// for names that are not this machine's while only this machine may come: a page whose name
    /// was made to point here (DNS rebinding).
    [[nodiscard]] Status check(const http::RequestHead& request) const;

  private:
    [[nodiscard]] bool allows_origin(std::string_view origin) const;

    std::string host_;
    std::string token_;
    std::vector<std::string> origins_;
};

}  // namespace opensandbox::mcp
