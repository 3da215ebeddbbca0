#include "runtime/native/remove_tree.hpp"

#include "runtime/native/kernel.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

constexpr int max_depth = 64;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Result<Directory> open_directory(int parent, const char* name) {
    UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return last_error(std::string("open ") + name);
    Directory directory(::fdopendir(fd.get()));
    if (!directory) return last_error(std::string("read ") + name);
    (void)fd.release();
    return directory;
}

/// Removes a tree. Directories too deep to descend into are moved up to `top`, whose loop meets
/// them again.
class TreeRemover {
  public:
    explicit TreeRemover(int top) : top_(top) {}

    /// Empties the open directory. False when something was moved up meanwhile.
    Status empty(DIR* directory, int depth) {
        const int fd = ::dirfd(directory);
        while (true) {
            errno = 0;
            const dirent* entry = ::readdir(directory);
            if (!entry) return check(errno == 0 ? 0 : -1, "readdir");
            const std::string name = entry->d_name;
            if (name == "." || name == "..") continue;
            if (entry->d_type != DT_DIR && ::unlinkat(fd, name.c_str(), 0) == 0) continue;
            if (entry->d_type != DT_DIR && errno != EISDIR && errno != EPERM) {
                return last_error("unlink " + name);
            }
            if (auto status = remove_directory(fd, name, depth); !status) return status;
        }
    }

    [[nodiscard]] bool moved() const { return moved_ > 0; }
    void reset() { moved_ = 0; }

  private:
    Status remove_directory(int parent, const std::string& name, int depth) {
        if (depth >= max_depth) {
            const std::string up = ".deep-" + std::to_string(++serial_);
            ++moved_;
            return check(::renameat(parent, name.c_str(), top_, up.c_str()), "move " + name);
        }
        {
            auto directory = open_directory(parent, name.c_str());
            if (!directory) return directory.error();
            if (auto status = empty(directory->get(), depth + 1); !status) return status;
        }
        return check(::unlinkat(parent, name.c_str(), AT_REMOVEDIR), "rmdir " + name);
    }

    int top_;
    unsigned serial_ = 0;
    unsigned moved_ = 0;
};

}  // namespace

Status remove_tree(const std::filesystem::path& path) {
    {
        auto top = open_directory(AT_FDCWD, path.c_str());
        if (!top) {
            if (top.error().code() == ErrorCode::not_found) return {};
            return top.error();
        }
        TreeRemover remover(::dirfd(top->get()));
        do {
            remover.reset();
            ::rewinddir(top->get());
            if (auto status = remover.empty(top->get(), 0); !status) {
                return status.error().within("remove " + path.string());
            }
        } while (remover.moved());
    }
    return check(::rmdir(path.c_str()), "rmdir " + path.string());
}

}  // namespace opensandbox::runtime::native
