#pragma once

#include "base/error.hpp"
#include "registry/credential.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace opensandbox::registry {

/// Our own store of logins: one JSON file, mode 0600, below the state directory. `login` and
/// `logout` write it, the server reads it for each pull. All functions block.
class CredentialFile {
  public:
    explicit CredentialFile(std::filesystem::path path) : path_(std::move(path)) {}
    /// Where a server with this state directory looks.
    static CredentialFile in(const std::filesystem::path& state_directory) {
        return CredentialFile(state_directory / "registry-credentials.json");
    }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Empty when there is none for this registry.
    [[nodiscard]] Result<std::optional<Credential>> find(const std::string& registry) const;
    Status put(const std::string& registry, const Credential& credential) const;
    /// False when there was none.
    Result<bool> remove(const std::string& registry) const;

  private:
    std::filesystem::path path_;
};

}  // namespace opensandbox::registry
