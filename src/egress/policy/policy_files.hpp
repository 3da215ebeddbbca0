#pragma once

#include "egress/policy/overlay.hpp"
#include "egress/policy/policy.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

/// The files of a policy (network contract 1.2). These block: they read and write files.
namespace opensandbox::egress {

inline constexpr std::string_view kOverlayDirectory = "/var/egress/rules";

/// deny.always and allow.always of a directory; a missing file is an empty one. Fails with the line
/// that is wrong, or with what reading it gave.
Result<Overlay> read_overlay(const std::filesystem::path& directory);

/// log_skip.always of a directory; a missing file is an empty one.
Result<LogSkip> read_log_skip(const std::filesystem::path& directory);

/// Tells whether the overlay's files changed: sizes and times of modification.
struct OverlayStamp {
    std::array<std::pair<std::int64_t, std::int64_t>, 2> files{};  ///< size (-1: none), mtime in ns
    friend bool operator==(const OverlayStamp&, const OverlayStamp&) = default;
};
OverlayStamp stamp_overlay(const std::filesystem::path& directory);

/// The policy to begin with.
struct InitialPolicy {
    Policy policy;
    std::string source;                 ///< "file", "environment" or "default"
    std::vector<std::string> warnings;  ///< why the file did not serve
};

/// `file` when it is set and holds a policy; else `rules` (the environment's JSON); else deny-all.
/// A bad file is a warning, bad `rules` are an error.
Result<InitialPolicy> initial_policy(const std::string& file, const std::string& rules);

/// Replaces the file whole, on the disk when this returns; an existing file's mode is kept, a new
/// one is 0600. Where the file itself is a mount point it is rewritten in place.
Status write_policy(const std::filesystem::path& file, const Policy& policy);

}  // namespace opensandbox::egress
