#pragma once

#include "agent/api/services.hpp"
#include "agent/files/paths.hpp"
#include "http/exchange.hpp"

#include <functional>
#include <span>

namespace opensandbox::agent {

/// Decides on the absolute path of a request: the path to use, or why not.
using PathRule = std::function<Result<std::string>(std::string path)>;

/// One request to a file route: as whom, when its path begins with /v1/filesystem/{uid}/{gid}, and
/// where, when it begins with /v1/isolated/session/{id}.
struct FileCall {
    FileCall(Services& s, http::Exchange& e, std::optional<Identity> i, PathRule r = {})
        : services(s), exchange(e), identity(std::move(i)), rule(std::move(r)) {}
    Services& services;
    http::Exchange& exchange;
    std::optional<Identity> identity;
    PathRule rule;

    /// The absolute form of a requested path.
    [[nodiscard]] Result<std::string> resolve(std::string_view requested) const {
        Result<std::string> path = resolve_path(requested, services.environment);
        return path && rule ? rule(std::move(*path)) : path;
    }
    /// The query parameter `path`; `invalid_argument` with MISSING_QUERY when there is none.
    [[nodiscard]] Result<std::string> path_parameter() const;
    /// All of them, as requested.
    [[nodiscard]] std::vector<std::string> path_parameters() const;
};

using FileHandler = Awaitable<void> (*)(FileCall);

/// One of the routes, without prefix.
struct FileRoute {
    std::string_view method;
    std::string_view pattern;
    FileHandler handler;
    bool writes;
    bool in_sessions = true;  ///< also of isolated sessions
};
std::span<const FileRoute> file_routes();

// The handlers, one file each group.
Awaitable<void> upload_files(FileCall call);
Awaitable<void> download_file(FileCall call);
Awaitable<void> search_files(FileCall call);
Awaitable<void> list_directory(FileCall call);
Awaitable<void> replace_in_files(FileCall call);
Awaitable<void> watch_files(FileCall call);
Awaitable<void> pack_files(FileCall call);
Awaitable<void> unpack_files(FileCall call);

}  // namespace opensandbox::agent
