#include "agent/isolated/overlay_commit.hpp"

#include "agent/files/mount_scope.hpp"
#include "agent/isolated/overlay_mount.hpp"
#include "base/scope_exit.hpp"

#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

Error failed(const std::string& what) {
    return Error::from_errno(errno, what);
}

UniqueFd clone_mount(int directory, const char* path, bool recursive) {
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
    if (recursive) flags |= AT_RECURSIVE;
    if (path[0] == '\0') flags |= AT_EMPTY_PATH;
    return UniqueFd(static_cast<int>(::syscall(SYS_open_tree, directory, path, flags)));
}

/// A mount below the overlay, detached for the time of the exchange.
struct Nested {
    std::string path;
    UniqueFd mount;
    bool directory;
};

/// One exchange of an overlay for another. All in the session's mounts, but for the lower
/// directory, which is the sandbox's and may be covered there.
class Exchange {
  public:
    Exchange(SessionOverlay& overlay, const SessionNamespaces& namespaces)
        : overlay_(overlay), namespaces_(namespaces) {}

    Status take_down(const std::vector<std::string>& nested) {
        MountScope scope(namespaces_.mounts()->get());
        if (!scope.status()) return scope.status();
        for (const std::string& path : nested) {
            bool held = std::ranges::any_of(
                nested_, [&](const Nested& other) { return is_within(path, other.path); });
            if (held) continue;
            struct stat info{};
            if (::stat(path.c_str(), &info) != 0) return failed("look at " + path);
            UniqueFd mount = clone_mount(AT_FDCWD, path.c_str(), true);
            if (!mount) return failed("hold " + path);
            nested_.emplace_back(path, std::move(mount), S_ISDIR(info.st_mode));
        }
        if (::umount2(overlay_.path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
            return failed("take down " + overlay_.path);
        }
        return {};
    }

    Status put_up() {
        UniqueFd mount;
        if (overlay_.in_memory) {
            Result<UniqueFd> made = make_in_memory();
            if (!made) return made.error();
            mount = std::move(*made);
        } else {
            UniqueFd upper(::open(overlay_.upper.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
            UniqueFd work(::open(overlay_.work.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
            mount.reset(make_overlay(overlay_.lower.get(), upper.get(), work.get(),
                                     overlay_.user_attributes));
        }
        if (!mount) return failed("renew the overlay " + overlay_.path);
        MountScope scope(namespaces_.mounts()->get());
        if (!scope.status()) return scope.status();
        if (!attach_mount(mount.get(), overlay_.path.c_str(), true)) {
            return failed("put up " + overlay_.path);
        }
        for (const Nested& nested : nested_) {
            if (!attach_mount(nested.mount.get(), nested.path.c_str(), nested.directory)) {
                return failed("put back " + nested.path);
            }
        }
        return {};
    }

  private:
    /// The lower is brought to where the upper is, for as long as it takes to join them.
    Result<UniqueFd> make_in_memory() {
        UniqueFd lower = clone_mount(overlay_.lower.get(), "", false);
        if (!lower) return failed("bring the lower of " + overlay_.path);
        MountScope scope(namespaces_.mounts()->get());
        if (!scope.status()) return scope.status().error();
        // By relative names: /proc in there does not know this process.
        std::string base = overlay_.upper.substr(0, overlay_.upper.rfind('/'));
        if (::chdir(base.c_str()) != 0) return failed("enter " + base);
        if (!attach_mount(lower.get(), "lower", true)) return failed("attach " + base + "/lower");
        ScopeExit leave([&] { ::umount2("lower", MNT_DETACH); });
        UniqueFd mount(make_overlay("lower", "upper", "work", overlay_.user_attributes));
        if (!mount) return failed("renew the overlay " + overlay_.path);
        return mount;
    }

    SessionOverlay& overlay_;
    const SessionNamespaces& namespaces_;
    std::vector<Nested> nested_;
};

/// Uppers in memory are read-only to the session, and thereby to all: not while they are committed.
Status allow_writes(const SessionOverlay& overlay, const SessionNamespaces& namespaces,
                    bool allowed) {
    if (!overlay.in_memory) return {};
    MountScope scope(namespaces.mounts()->get());
    if (!scope.status()) return scope.status();
    std::string root = overlay.upper.substr(0, overlay.upper.rfind("/memory/"));
    unsigned long set = allowed ? 0UL : MOUNT_ATTR_RDONLY;
    if (set_mount_attributes(AT_FDCWD, root.c_str(), set, MOUNT_ATTR_RDONLY & ~set, false)) {
        return {};
    }
    return failed("open the uppers in memory");
}

std::string sentence(const SessionOverlay& overlay, const std::vector<std::string>& conflicts) {
    std::string out = "changed since the session began:";
    for (const std::string& path : conflicts)
        out += " " + overlay.path + "/" + path;
    return out;
}

}  // namespace

Result<UniqueFd> open_upper(const SessionOverlay& overlay, const SessionNamespaces& namespaces) {
    std::optional<MountScope> scope;
    if (overlay.in_memory) {
        scope.emplace(namespaces.mounts()->get());
        if (!scope->status()) return scope->status().error();
    }
    UniqueFd upper(::open(overlay.upper.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!upper) return failed("open the upper of " + overlay.path);
    return upper;
}

Status commit_overlay(SessionOverlay& overlay, const SessionNamespaces& namespaces,
                      const std::vector<std::string>& nested, const Selection& selection,
                      bool force) {
    if (Status allowed = allow_writes(overlay, namespaces, true); !allowed) return allowed;
    ScopeExit forbid([&] { (void)allow_writes(overlay, namespaces, false); });
    Result<UniqueFd> upper = open_upper(overlay, namespaces);
    if (!upper) return upper.error();
    if (!force) {
        auto conflicts =
            find_conflicts(overlay.lower.get(), upper->get(), selection, overlay.since);
        if (!conflicts) return conflicts.error();
        if (!conflicts->empty()) {
            return Error(ErrorCode::conflict, sentence(overlay, *conflicts));
        }
    }
    Exchange exchange(overlay, namespaces);
    if (Status down = exchange.take_down(nested); !down) return down;
    Status committed = commit_upper(overlay.lower.get(), upper->get(), selection);
    overlay.since = current_time();
    Status up = exchange.put_up();
    if (!committed) return committed.error().within("commit " + overlay.path);
    return up;
}

}  // namespace opensandbox::agent
