#pragma once

#include "agent/process/process_context.hpp"
#include "agent/process/spawn.hpp"
#include "json/document.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// A checked body of POST /command (execd contract 3.1).
struct CommandRequest {
    std::string command;            ///< shell text; empty when `argv` is given
    std::vector<std::string> argv;  ///< without a shell
    std::string cwd;                ///< as requested, empty for the default
    bool background = false;
    std::chrono::milliseconds timeout{0};  ///< 0: none
    std::optional<std::uint32_t> uid;
    std::optional<std::uint32_t> gid;
    Environment::Pairs envs;

    /// What status and logs show as the command.
    [[nodiscard]] std::string content() const;
};

/// Checks every rule; `invalid_argument` names the field and the rule. Pure.
Result<CommandRequest> parse_command_request(const json::value& body);

/// Reads the optional members `uid` and `gid`, 0 to 4294967294, a gid only with a uid. Pure.
Status take_user_ids(const json::object& body, std::optional<std::uint32_t>& uid,
                     std::optional<std::uint32_t>& gid);

/// What to start for it: environment (the context's, then the EXECD_ENVS file, then the request's),
/// shell, directory and user. `invalid_argument` when the directory is missing.
Result<SpawnRequest> prepare_command(const ProcessContext& context, const CommandRequest& request);

}  // namespace opensandbox::agent
