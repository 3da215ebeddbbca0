#pragma once

#include "base/error.hpp"
#include "registry/credential.hpp"

#include <chrono>
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

/// Runs `program` (found on PATH) with the argument "get" and `input` on its standard input, and
/// returns what it wrote, at most 64 KiB. Fails with its exit code and without its words, which may
/// hold secrets; with `timeout` after `limit`, when it is killed; with `not_found`. Blocks.
Result<std::string> run_credential_program(const std::string& program, const std::string& input,
                                           std::chrono::milliseconds limit);

}  // namespace opensandbox::registry
