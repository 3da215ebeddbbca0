#include "base/remove_tree.hpp"
#include "base/scope_exit.hpp"
#include "doctor/probe.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/overlay.hpp"
#include "runtime/native/ground/layer/overlay_probe.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace opensandbox::doctor {

namespace fs = std::filesystem;
using runtime::native::check;
using runtime::native::last_error;
using runtime::native::write_file;

namespace {

fs::path nearest_existing(fs::path path) {
    std::error_code error;
    while (!fs::is_directory(path, error) && path.has_relative_path())
        path = path.parent_path();
    return path;
}

bool clones_files(const fs::path& directory) {
    const auto open_file = [&](const char* name) {
        return UniqueFd(::open((directory / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    };
    const UniqueFd from = open_file("from");
    const UniqueFd to = open_file("to");
    const std::string block(4096, 'x');
    if (!from || !to || ::write(from.get(), block.data(), block.size()) < 0) return false;
    return ::ioctl(to.get(), FICLONE, from.get()) == 0;
}

/// As root of a namespace that maps this user alone: enough to see whether the kernel mounts one.
Status as_ordinary_user(const fs::path& directory) {
    const std::string uid = "0 " + std::to_string(::geteuid()) + " 1";
    const std::string gid = "0 " + std::to_string(::getegid()) + " 1";
    if (auto s = check(::unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare"); !s) return s;
    if (auto s = write_file("/proc/self/setgroups", "deny"); !s) return s;
    if (auto s = write_file("/proc/self/uid_map", uid); !s) return s;
    if (auto s = write_file("/proc/self/gid_map", gid); !s) return s;
    return runtime::native::try_overlay(directory, directory, {false, false, true});
}

void probe_overlays(StateFacts& state, const fs::path& directory, bool root) {
    const auto attempt = [&](bool shifted) {
        return in_child([&]() -> Status {
            if (!root) return as_ordinary_user(directory);
            if (auto s = runtime::native::keep_capabilities_over_id_changes(); !s) return s;
            return runtime::native::try_overlay(directory, directory, {shifted, shifted, false});
        });
    };
    if (auto plain = attempt(false); !plain) state.overlay_problem = plain.error().message();
    if (!root) return;
    if (auto shifted = attempt(true); !shifted) state.shift_problem = shifted.error().message();
}

}  // namespace

MountFacts mount_of(std::string_view mounts, const fs::path& path) {
    MountFacts best;
    std::size_t longest = 0;
    std::istringstream lines{std::string(mounts)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string device;
        std::string target;
        std::string type;
        std::string options;
        if (!(words >> device >> target >> type >> options)) continue;
        const std::string text = path.string();
        const bool holds = target == "/" || text == target || text.starts_with(target + "/");
        // Of two on the same directory the later covers the earlier.
        if (!holds || target.size() < longest) continue;
        longest = target.size();
        best.type = type;
        best.quota = options.find("quota") != std::string::npos &&
                     options.find("noquota") == std::string::npos;
    }
    return best;
}

void probe_state(HostFacts& facts) {
    StateFacts& state = facts.state;
    state.probed = nearest_existing(state.path);
    std::error_code error;
    const fs::path real = fs::canonical(state.probed, error);
    const auto mount = mount_of(runtime::native::read_file_or_empty("/proc/self/mounts"),
                                error ? state.probed : real);
    state.type = mount.type;
    state.quota = mount.quota;
    struct statvfs space{};
    if (::statvfs(state.probed.c_str(), &space) == 0) {
        state.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
        state.total_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
    }
    std::string scratch = (state.probed / ".opensandbox-doctor-XXXXXX").string();
    state.writable = ::mkdtemp(scratch.data()) != nullptr;
    if (!state.writable) {
        state.overlay_problem = last_error("write to " + state.probed.string()).message();
        return;
    }
    const ScopeExit clean([&] { (void)remove_tree(scratch); });
    state.reflink = clones_files(scratch);
    probe_overlays(state, scratch, facts.root);
}

}  // namespace opensandbox::doctor
