#include "agent/files/paths.hpp"

#include <array>
#include <climits>
#include <unistd.h>

namespace opensandbox::agent {

Result<std::string> resolve_path(std::string_view requested, const Environment& environment) {
    if (requested.find('\0') != std::string_view::npos) {
        return Error(ErrorCode::invalid_argument, "path: must not hold NUL");
    }
    std::string path = expand_defined(requested, environment);
    if (path.empty()) return Error(ErrorCode::invalid_argument, "path: must not be empty");
    if (path == "~" || path.starts_with("~/")) {
        path.replace(0, 1, environment.get("HOME").value_or("/root"));
    }
    if (!path.starts_with('/')) {
        std::array<char, PATH_MAX> current{};
        if (::getcwd(current.data(), current.size()) == nullptr) current = {'/'};
        std::string_view base = current.data();
        path.insert(0, base == "/" ? "/" : std::string(base) + "/");
    }
    // What names a directory with a slash at its end is the directory.
    while (path.size() > 1 && path.ends_with('/'))
        path.pop_back();
    return path;
}

}  // namespace opensandbox::agent
