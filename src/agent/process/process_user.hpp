#pragma once

#include "agent/process/spawn.hpp"

#include <cstdint>
#include <optional>

namespace opensandbox::agent {

/// The user of the entrypoint and of all that is started beside it.
struct ProcessUser {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;

    /// Whether this process runs as that user already.
    [[nodiscard]] bool is_own() const;
    /// What a process to be started changes to; empty when this process is that user already.
    [[nodiscard]] std::optional<Credentials> credentials() const;
};

}  // namespace opensandbox::agent
