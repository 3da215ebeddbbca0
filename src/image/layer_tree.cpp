#include "image/layer_tree.hpp"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::image {
namespace {

Error tree_call_failed(const EntryPath& path, std::string_view call) {
    int number = errno;
    return Error::from_errno(number, "entry " + in_quotes(path.full()) + ": " + std::string(call));
}

Status mark_opaque(int directory, const EntryPath& path) {
    if (::fsetxattr(directory, "trusted.overlay.opaque", "y", 1, 0) == 0) return {};
    // An ordinary user's overlays read user.* instead.
    if (errno == EPERM && ::fsetxattr(directory, "user.overlay.opaque", "y", 1, 0) == 0) return {};
    return tree_call_failed(path, "mark opaque");
}

}  // namespace

bool is_whiteout_device(const struct stat& status) {
    return S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

int LayerTree::resolve(const std::string& path, int flags) const {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    const char* name = path.empty() ? "." : path.c_str();
    return static_cast<int>(::syscall(SYS_openat2, root_, name, &how, sizeof how));
}

Result<int> LayerTree::parent(const EntryPath& path) {
    if (path.parent.empty()) return root_;
    if (parent_ && path.parent == parent_path_) return parent_.get();
    UniqueFd found(resolve(path.parent, O_PATH | O_DIRECTORY));
    if (!found) {
        if (errno == ELOOP) {
            return broken_rule(path.full(), "the name must not pass through a symbolic link");
        }
        if (errno != ENOENT && errno != ENOTDIR)
            return tree_call_failed(path, "open its directory");
        auto made = make_parents(path);
        if (!made) return made.error();
        found = std::move(*made);
    }
    parent_ = std::move(found);
    parent_path_ = path.parent;
    return parent_.get();
}

Result<UniqueFd> LayerTree::make_parents(const EntryPath& path) {
    UniqueFd at(resolve("", O_PATH | O_DIRECTORY));
    if (!at) return tree_call_failed(path, "open the layer");
    EntryPath walked;
    std::string_view rest = path.parent;
    while (!rest.empty()) {
        std::string component(rest.substr(0, rest.find('/')));
        rest.remove_prefix(std::min(rest.size(), component.size() + 1));
        walked.parent = walked.full();
        walked.name = component;
        constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        UniqueFd next(::openat(at.get(), component.c_str(), kFlags));
        if (!next) {
            struct stat status{};
            bool exists = ::fstatat(at.get(), component.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
            if (exists && S_ISLNK(status.st_mode)) {
                return broken_rule(path.full(), "the name must not pass through a symbolic link");
            }
            if (exists && !is_whiteout_device(status)) {
                return broken_rule(path.full(), "the name must pass through directories only");
            }
            if (auto ok = budget_.add_entry(path.full(), 0); !ok) return ok.error();
            if (auto ok = make_directory(at.get(), walked); !ok) return ok.error();
            next = UniqueFd(::openat(at.get(), component.c_str(), kFlags));
            if (!next) return tree_call_failed(path, "open its directory");
        }
        at = std::move(next);
    }
    return at;
}

Status LayerTree::clear(int parent, const EntryPath& path) {
    if (::unlinkat(parent, path.name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return tree_call_failed(path, "replace");
    if (::unlinkat(parent, path.name.c_str(), AT_REMOVEDIR) == 0) {
        if (parent != parent_.get()) parent_.reset();  // it may have been this one
        return {};
    }
    if (errno == ENOTEMPTY || errno == EEXIST) {
        return broken_rule(path.full(), "a directory that holds files cannot be replaced");
    }
    return tree_call_failed(path, "replace");
}

Status LayerTree::make_directory(int parent, const EntryPath& path) {
    const char* name = path.name.c_str();
    if (::mkdirat(parent, name, 0755) == 0) {
        if (::fchmodat(parent, name, 0755, 0) == 0) return {};  // whatever the umask is
        return tree_call_failed(path, "set the mode");
    }
    if (errno != EEXIST) return tree_call_failed(path, "make a directory");
    struct stat status{};
    if (::fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return tree_call_failed(path, "read its status");
    }
    if (S_ISDIR(status.st_mode)) return {};
    if (auto ok = clear(parent, path); !ok) return ok;
    if (::mkdirat(parent, name, 0755) != 0 || ::fchmodat(parent, name, 0755, 0) != 0) {
        return tree_call_failed(path, "make a directory");
    }
    return is_whiteout_device(status) ? make_opaque(parent, path) : Status();
}

Status LayerTree::make_opaque(int parent, const EntryPath& path) {
    const char* name = path.name.empty() ? "." : path.name.c_str();
    UniqueFd directory(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) return tree_call_failed(path, "open the directory");
    return mark_opaque(directory.get(), path);
}

Status LayerTree::make_whiteout(int parent, const EntryPath& path, std::string_view target) {
    if (target.empty() || target == "." || target == "..") {
        return broken_rule(path.full(), "a whiteout must name a file");
    }
    std::string name(target);
    EntryPath hidden;
    hidden.parent = path.parent;
    hidden.name = name;
    struct stat status{};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        // A file of this layer hides the one below by itself.
        return S_ISDIR(status.st_mode) ? make_opaque(parent, hidden) : Status();
    }
    if (errno != ENOENT) return tree_call_failed(path, "read its status");
    if (auto ok = budget_.add_entry(path.full(), 0); !ok) return ok;
    if (::mknodat(parent, name.c_str(), S_IFCHR, makedev(0, 0)) == 0) return {};
    return tree_call_failed(path, "make a whiteout");
}

Result<UniqueFd> LayerTree::open_directory(const std::string& path) {
    UniqueFd directory(resolve(path, O_RDONLY | O_DIRECTORY));
    if (!directory) return Error::from_errno(errno, "entry " + in_quotes(path) + ": open");
    return directory;
}

Status LayerTree::link(int parent, const EntryPath& path, std::string_view target) {
    while (target.starts_with('/'))
        target.remove_prefix(1);  // links count from the layer's root
    auto to = parse_entry_path(target);
    if (!to) {
        return broken_rule(path.full(), "hard link to " + in_quotes(target) +
                                            ": a link must name a file of its own layer");
    }
    auto absent = [&] {
        return broken_rule(path.full(), "hard link to " + in_quotes(target) +
                                            ", which the layer does not hold before it");
    };
    UniqueFd directory(resolve(to->parent, O_PATH | O_DIRECTORY));
    struct stat status{};
    if (!directory ||
        ::fstatat(directory.get(), to->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return absent();
    }
    if (is_whiteout_device(status)) return absent();
    if (S_ISDIR(status.st_mode)) {
        return broken_rule(path.full(), "a hard link must not name a directory");
    }
    struct stat present{};
    if (::fstatat(parent, path.name.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0 &&
        present.st_ino == status.st_ino) {
        return {};  // a link to itself
    }
    if (auto ok = clear(parent, path); !ok) return ok;
    if (::linkat(directory.get(), to->name.c_str(), parent, path.name.c_str(), 0) == 0) return {};
    return tree_call_failed(path, "link to " + in_quotes(target));
}

}  // namespace opensandbox::image
