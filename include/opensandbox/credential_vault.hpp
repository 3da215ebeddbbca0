#pragma once

#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// A credential that a vault holds; its value never comes back.
struct CredentialInfo {
    std::string name;
    std::string source_type;  ///< "inline"
    std::int64_t revision = 0;
};

/// Requests that a binding is for. Empty lists: as the vault's defaults say.
struct CredentialMatch {
    std::vector<std::string> schemes;  ///< "https", "http"
    std::vector<std::int64_t> ports;
    std::vector<std::string> hosts;  ///< "api.example.com", "*.example.com"
    std::vector<std::string> methods;
    std::vector<std::string> paths;  ///< "/v1/*": the star only at the end
};

/// Which requests get a credential, and how.
struct BindingInfo {
    std::string name;
    std::int64_t revision = 0;
    std::optional<CredentialMatch> match;
    /// "bearer", "basic", "apiKey", "customHeaders" or "passthrough"; empty when it is not told.
    std::string auth_type;
    std::optional<std::string> auth_name;  ///< the header's name, of "apiKey"
};

/// A vault without its secrets, both lists sorted by name.
struct VaultState {
    std::int64_t revision = 0;  ///< 1 when it is new, one more with every change
    std::vector<CredentialInfo> credentials;
    std::vector<BindingInfo> bindings;
};

/// Credentials that the egress control of one sandbox adds to requests, so that the sandbox itself
/// never holds them. Cheap to copy. The sandbox must have been created with `credential_proxy` and
/// a network policy: `not_found`, `conflict` or `invalid_argument` otherwise.
class CredentialVault {
  public:
    CredentialVault(Connection connection, std::string sandbox_id)
        : connection_(std::move(connection)), id_(std::move(sandbox_id)) {}

    /// `document`: a JSON object with `credentials` ([{name, source: {type: "inline", value}}]) and
    /// `bindings` ([{name, match, auth}]), as specs/egress.yaml has it. `conflict` when there is a
    /// vault already.
    boost::asio::awaitable<Result<VaultState>> create(std::string document) const;
    boost::asio::awaitable<Result<VaultState>> get() const;
    /// `document`: a JSON object with `credentials` and/or `bindings`, each {add, replace, delete},
    /// and perhaps `expectedRevision`: `conflict` when the vault has another, and without it where
    /// the interception mode is "credential-bound". All or nothing.
    boost::asio::awaitable<Result<VaultState>> patch(std::string document) const;
    boost::asio::awaitable<Status> remove() const;

    boost::asio::awaitable<Result<std::vector<CredentialInfo>>> credentials() const;
    boost::asio::awaitable<Result<CredentialInfo>> credential(std::string name) const;
    boost::asio::awaitable<Result<std::vector<BindingInfo>>> bindings() const;
    boost::asio::awaitable<Result<BindingInfo>> binding(std::string name) const;

  private:
    Connection connection_;
    std::string id_;
};

}  // namespace opensandbox::sdk
