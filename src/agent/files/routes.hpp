#pragma once

#include "agent/files/paths.hpp"
#include "agent/services.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// One request to a file route: as whom, when its path begins with /v1/filesystem/{uid}/{gid}.
struct FileCall {
    FileCall(Services& s, http::Exchange& e, std::optional<Identity> i)
        : services(s), exchange(e), identity(i) {}
    Services& services;
    http::Exchange& exchange;
    std::optional<Identity> identity;

    /// The absolute form of a requested path.
    [[nodiscard]] Result<std::string> resolve(std::string_view requested) const {
        return resolve_path(requested, services.environment);
    }
    /// The query parameter `path`; `invalid_argument` with MISSING_QUERY when there is none.
    [[nodiscard]] Result<std::string> path_parameter() const;
    /// All of them, as requested.
    [[nodiscard]] std::vector<std::string> path_parameters() const;
};

/// /files/*, /directories* and the same under /v1/filesystem/{uid}/{gid} (execd contract 6).
void add_file_routes(http::Router& router, Services& services);

// The handlers, one file each group.
Awaitable<void> upload_files(FileCall call);
Awaitable<void> download_file(FileCall call);
Awaitable<void> search_files(FileCall call);
Awaitable<void> list_directory(FileCall call);
Awaitable<void> replace_in_files(FileCall call);
Awaitable<void> watch_files(FileCall call);

}  // namespace opensandbox::agent
