#pragma once

#include "registry/credential_file.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::registry {

/// Where the logins of registries are looked for, in this order: our own store, then Docker's
/// config.json with the credential programs that it names.
class Keychain {
  public:
    /// `docker_config` may be empty: not looked at.
    Keychain(CredentialFile own, std::filesystem::path docker_config)
        : own_(std::move(own)), docker_config_(std::move(docker_config)) {}

    /// The login; anonymous when nobody has one. A file that is broken and a program that fails are
    /// logged and passed over: a public image needs neither. Blocks.
    [[nodiscard]] Credential find(const std::string& registry) const;

    /// $DOCKER_CONFIG/config.json, else ~/.docker/config.json, else empty.
    static std::filesystem::path default_docker_config();

  private:
    [[nodiscard]] Credential find_docker(const std::string& registry) const;

    CredentialFile own_;
    std::filesystem::path docker_config_;
};

}  // namespace opensandbox::registry
