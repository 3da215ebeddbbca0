#include "agent/files/replacement_file.hpp"
#include "agent/files/tree_walk.hpp"
#include "agent/isolated/preparation.hpp"
#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/remove_tree.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <filesystem>

namespace opensandbox::agent {

Result<SessionDirectory> SessionDirectory::create(const std::string& root, const std::string& id) {
    if (Status made = make_directories(root); !made) return made.error();
    SessionDirectory out;
    std::string path = root + "/" + id;
    if (::mkdir(path.c_str(), 0700) != 0) return Error::from_errno(errno, "make " + path);
    out.path_ = std::move(path);
    out.lock_.reset(::open(out.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!out.lock_ || ::flock(out.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        return Error::from_errno(errno, "lock " + out.path_);
    }
    return out;
}

SessionDirectory::~SessionDirectory() {
    remove();
}

Status SessionDirectory::make_layers(const std::string& name) const {
    std::string base = path_ + "/" + name;
    for (const std::string& path : {base, base + "/upper", base + "/work"}) {
        if (::mkdir(path.c_str(), 0755) != 0) return Error::from_errno(errno, "make " + path);
    }
    return {};
}

void SessionDirectory::remove() {
    // A moved-from object has no lock.
    if (!lock_) return;
    if (Status removed = remove_tree(path_); !removed) {
        log::warn("cannot remove the directory of a session",
                  {{"path", path_}, {"error", removed.error().message()}});
    }
    lock_.reset();
}

void sweep_upper_root(const std::string& root) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
        if (!is_uuid(entry.path().filename().string())) continue;
        UniqueFd lock(
            ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
        if (Status removed = remove_tree(entry.path()); !removed) {
            log::warn("cannot remove the directory of a former session",
                      {{"path", entry.path().string()}, {"error", removed.error().message()}});
        }
    }
}

std::uint64_t disk_usage(const std::string& directory, std::uint64_t enough) {
    std::uint64_t total = 0;
    TreeWalk walk(directory, PATH_MAX);
    while (const TreeWalk::Entry* entry = walk.next()) {
        struct stat info{};
        if (::lstat(entry->path.c_str(), &info) != 0) continue;
        total += static_cast<std::uint64_t>(info.st_blocks) * 512;
        if (total > enough) break;
    }
    return total;
}

}  // namespace opensandbox::agent
