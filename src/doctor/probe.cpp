#include "doctor/probe.hpp"

#include "base/unique_fd.hpp"
#include "runtime/host_command.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/subordinate_ids.hpp"
#include "runtime/native/host/gvisor_program.hpp"
#include "runtime/native/network/pasta.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::doctor {

namespace fs = std::filesystem;

namespace {

bool offers_socket(const fs::path& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) &&
           ::access(path.c_str(), R_OK | W_OK) == 0;
}

void probe_programs(HostFacts& facts) {
    facts.id_map_tools = !runtime::find_host_program("newuidmap").empty() &&
                         !runtime::find_host_program("newgidmap").empty();
    facts.runsc = runtime::find_host_program("runsc");
    for (const char* tool : {"ossfs", "ossfs2"}) {
        std::string path = runtime::find_host_program(tool);
        if (!path.empty()) facts.bucket_tools.push_back(std::move(path));
    }
    if (!facts.runsc.empty()) {
        auto usable = runtime::native::check_gvisor(facts.runsc);
        if (!usable) facts.runsc_problem = usable.error().message();
    }
    const auto pasta = runtime::native::find_pasta();
    if (pasta)
        facts.user_network = *pasta;
    else
        facts.user_network_problem = pasta.error().message();
    facts.docker_socket = offers_socket("/var/run/docker.sock");
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    facts.podman_socket = offers_socket("/run/podman/podman.sock") ||
                          (runtime && offers_socket(fs::path(runtime) / "podman/podman.sock"));
}

}  // namespace

Status in_child(const std::function<Status()>& work) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) return Error::from_errno(errno, "pipe2");
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return Error::from_errno(errno, "fork");
    if (pid == 0) {
        const Status status = work();
        const std::string said = status ? "" : status.error().message();
        const ssize_t written = ::write(writing.get(), said.data(), said.size());
        ::_exit(status ? 0 : written < 0 ? 2 : 1);
    }
    writing.reset();
    std::string said;
    std::array<char, 512> buffer;
    for (ssize_t got = 0; (got = ::read(reading.get(), buffer.data(), buffer.size())) > 0;)
        said.append(buffer.data(), static_cast<std::size_t>(got));
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return Error(ErrorCode::io, said.empty() ? "the attempt crashed" : said);
}

HostFacts probe_host(const fs::path& state_directory) {
    HostFacts facts;
    facts.root = ::geteuid() == 0;
    facts.user =
        runtime::native::user_name(runtime::native::read_file_or_empty("/etc/passwd"), ::geteuid());
    facts.state.path = state_directory;
    utsname name{};
    if (::uname(&name) == 0) facts.kernel = name.release;
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) facts.open_files = files.rlim_max;
    probe_programs(facts);
    probe_kernel(facts);
    probe_cgroups(facts);
    probe_network(facts);
    probe_state(facts);
    return facts;
}

}  // namespace opensandbox::doctor
