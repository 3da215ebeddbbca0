#include "runtime/native/id_map.hpp"

#include "runtime/native/kernel.hpp"

#include <sys/wait.h>

#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace opensandbox::runtime::native {

Status map_ids(pid_t pid, std::uint32_t base) {
    const std::string directory = "/proc/" + std::to_string(pid);
    const std::string line = "0 " + std::to_string(base) + " 65536";
    for (const char* file : {"/gid_map", "/uid_map"}) {
        if (auto status = write_file(directory + file, line); !status) return status;
    }
    return {};
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
