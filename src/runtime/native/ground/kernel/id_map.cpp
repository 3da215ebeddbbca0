#include "runtime/native/ground/kernel/id_map.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

/// A run of ids of this process's own namespace.
struct Extent {
    std::uint64_t inside = 0;
    std::uint64_t outside = 0;
    std::uint64_t count = 0;
};

/// Those that lie one after the other from 0 on.
std::vector<Extent> own_extents(const char* file) {
    std::istringstream lines(read_file_or_empty(std::string("/proc/self") + file));
    std::vector<Extent> extents;
    std::uint64_t mapped = 0;
    for (Extent extent; lines >> extent.inside >> extent.outside >> extent.count;) {
        if (extent.inside != mapped) break;
        mapped += extent.count;
        extents.push_back(extent);
    }
    return extents;
}

/// Every id is itself. The kernel wants one line for each extent that it lies in.
std::string identity(const char* file, std::uint64_t count) {
    std::string text;
    for (const Extent& extent : own_extents(file)) {
        if (extent.inside >= count) break;
        const std::string first = std::to_string(extent.inside);
        const std::uint64_t length = std::min(extent.count, count - extent.inside);
        text += first + " " + first + " " + std::to_string(length) + "\n";
    }
    return text;
}

}  // namespace

Status map_ids(pid_t pid, std::uint32_t base, std::uint32_t count) {
    const std::string directory = "/proc/" + std::to_string(pid);
    for (const char* file : {"/gid_map", "/uid_map"}) {
        const std::string text = base == 0
                                     ? identity(file, count)
                                     : "0 " + std::to_string(base) + " " + std::to_string(count);
        if (auto status = write_file(directory + file, text); !status) return status;
    }
    return {};
}

std::uint32_t ids_of_this_namespace() {
    std::uint64_t least = 65'536;
    for (const char* file : {"/uid_map", "/gid_map"}) {
        const auto extents = own_extents(file);
        least = std::min(least, extents.empty() ? 0 : extents.back().inside + extents.back().count);
    }
    return static_cast<std::uint32_t>(least);
}

Result<UniqueFd> user_namespace_of(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/user";
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return last_error("open " + path);
    return fd;
}

Result<UniqueFd> make_user_namespace(std::uint32_t base) {
    auto child = clone_process(CLONE_NEWUSER, -1);
    if (!child) return child.error();
    if (child->pid == 0) {
        while (true)
            ::pause();
    }
    auto mapped = map_ids(child->pid, base);
    auto userns = user_namespace_of(child->pid);
    ::kill(child->pid, SIGKILL);
    ::waitpid(child->pid, nullptr, __WALL);
    if (!mapped) return mapped.error();
    return userns;
}

}  // namespace opensandbox::runtime::native
