#include "runtime/native/host/gvisor_program.hpp"

#include "base/unique_fd.hpp"
#include "runtime/host_command.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAgentFile = "agent";
/// More program headers than this has no executable.
constexpr std::size_t kMostHeaders = 64;

Error unusable(const fs::path& program, const std::string& why) {
    return {ErrorCode::unsupported, program.string() + " " + why};
}

Status check_format(const fs::path& program, int fd) {
    Elf64_Ehdr head{};
    const bool whole = ::pread(fd, &head, sizeof head, 0) == sizeof head;
    if (!whole || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64) {
        return unusable(program, "is no executable of this machine");
    }
    const std::size_t headers = std::min<std::size_t>(head.e_phnum, kMostHeaders);
    for (std::size_t i = 0; i < headers; ++i) {
        Elf64_Phdr part{};
        const auto offset = static_cast<off_t>(head.e_phoff + i * sizeof part);
        if (::pread(fd, &part, sizeof part, offset) != sizeof part) break;
        if (part.p_type == PT_INTERP) {
            return unusable(program,
                            "is linked dynamically; gVisor's own releases, and builds with "
                            "CGO_ENABLED=0, are not");
        }
    }
    return {};
}

}  // namespace

Status check_gvisor(const fs::path& program) {
    const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info{};
    if (!fd || ::fstat(fd.get(), &info) < 0) return last_error("open " + program.string());
    constexpr mode_t kEverybody = S_IRUSR | S_IXUSR | S_IXGRP | S_IXOTH;
    if (!S_ISREG(info.st_mode) || (info.st_mode & kEverybody) != kEverybody) {
        return unusable(program, "is not executable by everybody (chmod 755)");
    }
    return check_format(program, fd.get());
}

Result<fs::path> find_gvisor(const std::string& name) {
    std::error_code error;
    const std::string found = find_host_program(name);
    if (found.empty()) return Error(ErrorCode::not_found, "there is no " + name + " in PATH");
    fs::path program = fs::absolute(found, error);
    if (!fs::exists(program, error)) return Error(ErrorCode::not_found, "there is no " + found);
    if (auto s = check_gvisor(program); !s) return s.error();
    return program;
}

Status keep_agent(const fs::path& directory) {
    const fs::path fresh = directory / (std::string(kAgentFile) + ".new");
    std::error_code error;
    fs::copy_file("/proc/self/exe", fresh, fs::copy_options::overwrite_existing, error);
    if (error) return Error(ErrorCode::io, "copy this executable: " + error.message());
    if (::chmod(fresh.c_str(), 0755) < 0) return last_error("chmod " + fresh.string());
    return check(::rename(fresh.c_str(), (directory / kAgentFile).c_str()),
                 "rename " + fresh.string());
}

Result<GvisorPrograms> open_gvisor_programs(const fs::path& runsc, const fs::path& directory) {
    GvisorPrograms out;
    out.runsc.reset(::open(runsc.c_str(), O_RDONLY | O_CLOEXEC));
    if (!out.runsc) return last_error("open " + runsc.string());
    const fs::path agent = directory / kAgentFile;
    out.agent.reset(::open_tree(AT_FDCWD, agent.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!out.agent) return last_error("clone the mount of " + agent.string());
    struct mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (::mount_setattr(out.agent.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0) {
        return last_error("make the agent read-only");
    }
    return out;
}

}  // namespace opensandbox::runtime::native
