#pragma once

#include "base/error.hpp"
#include "registry/credential.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::registry {

/// What Docker's config.json says of one registry.
struct DockerLogin {
    std::optional<Credential> credential;  ///< from "auths"
    std::string program;  ///< of credHelpers, else credsStore: "docker-credential-<program>"
    std::string server;   ///< the name that the program knows the registry by
};

/// Reads the file's text. `invalid_argument` names the member that is wrong. Pure.
Result<DockerLogin> find_docker_login(std::string_view text, const std::string& registry);

/// Reads what a credential program answers to "get": {"Username","Secret"}. Pure.
Result<Credential> parse_program_answer(std::string_view text);

}  // namespace opensandbox::registry
