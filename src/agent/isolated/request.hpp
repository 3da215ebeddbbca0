#pragma once

#include "json/document.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::agent {

enum class IsolationProfile : unsigned char { strict, balanced };
enum class MountMode : unsigned char { read_write, overlay, read_only };
enum class UidMode : unsigned char { setpriv, userns };

/// One directory that a session works in.
struct WorkMount {
    std::string path;  ///< absolute and clean
    MountMode mode;
    bool persist;  ///< of an overlay: what was written can be had from outside (diff, commit)
};

struct BindMount {
    std::string source;
    std::string destination;
    bool read_only;
};

/// Which variables of the agent's environment runs get.
struct EnvironmentFilter {
    bool allow = false;  ///< the names are those that pass; else those that do not
    std::vector<std::string> names;

    [[nodiscard]] bool passes(std::string_view name) const;
};

/// Body of POST /v1/isolated/session (execd contract 9).
struct IsolatedSessionRequest {
    IsolationProfile profile = IsolationProfile::strict;
    std::vector<WorkMount> mounts;  ///< at least one; the workspace first
    bool has_workspace = false;     ///< the first one was given as `workspace`
    std::vector<std::string> extra_writable;
    std::vector<BindMount> binds;
    bool share_net = true;
    std::optional<EnvironmentFilter> environment;
    std::optional<std::uint32_t> uid;
    std::optional<std::uint32_t> gid;
    UidMode uid_mode = UidMode::setpriv;
    std::chrono::seconds idle_timeout{0};  ///< 0: none

    /// Members of the answer that repeat the request, each with a leading comma.
    [[nodiscard]] std::string echo() const;
};

/// Checks everything that needs no look at the file system; `invalid_argument` names the field.
Result<IsolatedSessionRequest> parse_isolated_session_request(const json::value& body);

/// Body of POST …/run.
struct RunRequest {
    std::string code;
    std::vector<std::pair<std::string, std::string>> envs;
    std::chrono::milliseconds timeout{0};  ///< 0: none
    bool background = false;
};

Result<RunRequest> parse_run_request(const json::value& body);

/// Absolute, without `.`, `..`, double or trailing slashes. Pure.
bool is_clean_path(std::string_view path);
/// Whether `path` is `directory` or below it; both clean. Pure.
bool is_within(std::string_view path, std::string_view directory);

}  // namespace opensandbox::agent
