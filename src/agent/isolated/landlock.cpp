#include "agent/isolated/landlock.hpp"

#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

// Later than the headers of the oldest system that this builds on.
constexpr std::uint64_t kRefer = std::uint64_t{1} << 13;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;

constexpr std::uint64_t kChangeFile = LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr std::uint64_t kChangeDirectory =
    LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

}  // namespace

int landlock_version() {
    long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? static_cast<int>(version) : 0;
}

Result<UniqueFd> make_landlock(const std::vector<std::string>& writable) {
    const int version = landlock_version();
    if (version == 0) return Error(ErrorCode::unsupported, "landlock: this kernel has none");
    const std::uint64_t file = kChangeFile | (version >= 3 ? kTruncate : 0);
    const std::uint64_t all = file | kChangeDirectory | (version >= 2 ? kRefer : 0);
    std::uint64_t handled = all;  // the first member of the attributes, whatever the version
    UniqueFd ruleset(
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
    if (!ruleset) return Error::from_errno(errno, "landlock: make a ruleset");
    for (const std::string& path : writable) {
        UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
        struct stat info{};
        if (!place || ::fstat(place.get(), &info) != 0) continue;
        landlock_path_beneath_attr rule{};
        rule.allowed_access = S_ISDIR(info.st_mode) ? all : file;
        rule.parent_fd = place.get();
        if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) !=
            0) {
            return Error::from_errno(errno, "landlock: allow " + path);
        }
    }
    return ruleset;
}

}  // namespace opensandbox::agent
