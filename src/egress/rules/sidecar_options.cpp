#include "egress/rules/sidecar_options.hpp"

#include "net/route_socket.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace opensandbox::egress::rules {

namespace {

/// Where the unified hierarchy is mounted; empty when it is not.
std::string unified_mount() {
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string device, path, kind;
        words >> device >> path >> kind;
        if (kind == "cgroup2") return path;
    }
    return {};
}

/// The path of this process in it, from the root that it sees: "/", "/a/b".
std::string own_path() {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);)
        if (line.starts_with("0::")) return line.substr(3);
    return {};
}

}  // namespace

Result<ControlGroup> own_control_group() {
    const auto mount = unified_mount();
    const auto path = own_path();
    if (mount.empty() || path.empty())
        return Error(ErrorCode::not_found, "there is no unified hierarchy of control groups");
    if (path.starts_with("/.."))
        return Error(ErrorCode::not_found, "this process is outside of the hierarchy it sees");
    struct stat folder{};
    if (::stat((mount + path).c_str(), &folder) != 0)
        return Error::from_errno(errno, "look at control group " + path);
    constexpr ino_t kRoot = 1;
    if (folder.st_ino == kRoot)
        return Error(ErrorCode::not_found, "this process is in no control group of its own");
    // In a hierarchy of its own, as containers have, its group is the root that it sees.
    const auto level = path == "/" ? 0 : std::ranges::count(path, '/');
    return ControlGroup(folder.st_ino, static_cast<std::uint32_t>(level));
}

Result<std::vector<std::string>> outer_links() {
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    const auto links = routes->list_links("");
    if (!links) return links.error();
    std::vector<std::string> names;
    for (const auto& link : *links)
        if (link.name != "lo") names.push_back(link.name);
    return names;
}

}  // namespace opensandbox::egress::rules
