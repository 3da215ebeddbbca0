#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// How a spawner was started: the `[native]` section as far as the spawner needs it.
struct SpawnerOptions {
    std::filesystem::path state_directory;
    std::string address_range = "10.77.0.0/16";
    std::string address_range6 = "auto";     ///< or "none", or an IPv6 network
    std::uint32_t pool_size = 8;             ///< 0..1000
    std::string publish_host = "127.0.0.1";  ///< numeric
    std::uint64_t layer_bytes = 0;           ///< size of writable layers; 0: no limit
    /// gVisor's program: sandboxes run under it; empty: on the host's kernel.
    std::string runsc;
    /// It runs in a user namespace of its user, who is not root.
    bool rootless = false;
    /// Descriptor on which to say "ready" or "error …" once, after leaving the caller's process
    /// group; -1 when started by hand.
    int report = -1;

    /// The command line of the role, without argv[0]; parse() reads it back.
    [[nodiscard]] std::vector<std::string> to_arguments() const;
    /// invalid_argument names the option and the rule.
    static Result<SpawnerOptions> parse(const std::vector<std::string>& arguments);

    /// Where the server finds the spawner.
    [[nodiscard]] std::filesystem::path socket_path() const;
    /// Lock, log and journal.
    [[nodiscard]] std::filesystem::path own_directory() const;
    /// Writable layers, one directory a slot.
    [[nodiscard]] std::filesystem::path sandboxes_directory() const;
};

/// Where the spawner of a state directory writes down its sandboxes.
std::filesystem::path journal_directory(const std::filesystem::path& state_directory);

}  // namespace opensandbox::runtime::native
