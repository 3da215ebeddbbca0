#include "base/remove_tree.hpp"

#include "base/identifier.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <stdio.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace opensandbox {
namespace {

struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

DirectoryStream open_stream(int parent, const char* name) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = ::openat(parent, name, kFlags);
    if (fd < 0 && errno == EACCES && ::fchmodat(parent, name, 0700, 0) == 0) {
        fd = ::openat(parent, name, kFlags);
    }
    if (fd < 0) return nullptr;
    DIR* stream = ::fdopendir(fd);
    if (!stream) ::close(fd);
    return DirectoryStream(stream);
}

class Remover {
  public:
    explicit Remover(int root) : root_(root) {}

    /// Empties one directory whose subdirectories that hold something move up to the root.
    bool empty(DIR* stream) {
        bool is_root = false;
        struct stat here{}, top{};
        int fd = ::dirfd(stream);
        if (::fstat(fd, &here) == 0 && ::fstat(root_, &top) == 0) {
            is_root = here.st_ino == top.st_ino && here.st_dev == top.st_dev;
        }
        bool progress = true;
        for (;;) {
            bool left = false;
            progress = false;
            ::rewinddir(stream);
            while (const dirent* entry = ::readdir(stream)) {
                std::string_view name = entry->d_name;
                if (name == "." || name == "..") continue;
                left = true;
                progress = remove_one(fd, entry->d_name, is_root) || progress;
            }
            if (!left) return true;
            if (!progress) return false;
        }
    }

  private:
    bool remove_one(int directory, const char* name, bool is_root) {
        if (::unlinkat(directory, name, 0) == 0) return true;
        if (::unlinkat(directory, name, AT_REMOVEDIR) == 0) return true;
        if (errno != ENOTEMPTY && errno != EEXIST) return false;
        if (!is_root) {
            std::string fresh = prefix_ + std::to_string(moved_++);
            if (::renameat(directory, name, root_, fresh.c_str()) == 0) return true;
            // A directory that may not be written to cannot be moved before it can be entered.
            if (::fchmodat(directory, name, 0700, 0) != 0) return false;
            return ::renameat(directory, name, root_, fresh.c_str()) == 0;
        }
        DirectoryStream inner = open_stream(directory, name);
        return inner && empty(inner.get()) && ::unlinkat(directory, name, AT_REMOVEDIR) == 0;
    }

    int root_;
    std::string prefix_ = ".removed-" + new_hex_id() + "-";
    std::uint64_t moved_ = 0;
};

}  // namespace

Status remove_tree(const std::filesystem::path& directory) {
    DirectoryStream stream = open_stream(AT_FDCWD, directory.c_str());
    if (!stream) {
        if (errno == ENOENT) return {};
        return Error::from_errno(errno, "open " + directory.string());
    }
    bool emptied = Remover(::dirfd(stream.get())).empty(stream.get());
    if (emptied && ::rmdir(directory.c_str()) == 0) return {};
    int number = errno;
    return Error::from_errno(number, "remove " + directory.string());
}

}  // namespace opensandbox
