#include "runtime/native/ground/confinement/cgroup.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 5> kWanted{"cpu", "memory", "pids", "freezer", "blkio"};
constexpr std::array<std::string_view, 4> kWantedUnified{"cpu", "memory", "pids", "io"};

/// Bytes, of version 1.
constexpr const char* kSocketBuffers = "67108864";

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in{std::string(text)};
    for (std::string part; std::getline(in, part, separator);) {
        if (!part.empty()) parts.push_back(part);
    }
    return parts;
}

/// /proc/mounts writes blanks and backslashes as three octal digits.
std::string unescape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                     (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// Turns on what `directory` has for its children; what it has not stays off.
Status enable_controllers(const fs::path& directory, CgroupHierarchy& tree) {
    std::set<std::string> enabled;
    for (const std::string& controller : tree.controllers) {
        if (auto status = write_file(directory / "cgroup.subtree_control", "+" + controller);
            !status) {
            return status;
        }
        enabled.insert(controller);
    }
    tree.controllers = std::move(enabled);
    return {};
}

constexpr const char* kLeafName = "opensandbox-init";

/// The cgroup of this process in the tree of v2, or the one above where empty_root() moved it away.
fs::path own_group(const fs::path& mount) {
    for (const std::string& line : split(read_file_or_empty("/proc/self/cgroup"), '\n')) {
        if (!line.starts_with("0::/")) continue;
        fs::path own = mount / line.substr(4);
        return own.filename() == kLeafName ? own.parent_path() : own;
    }
    return mount;
}

/// Only the real root may hold processes beside controllers; the root of a container may not.
void empty_root(const fs::path& root) {
    const fs::path leaf = root / kLeafName;
    ::mkdir(leaf.c_str(), 0755);
    for (int round = 0; round < 10; ++round) {
        auto text = read_file(root / "cgroup.procs");
        if (!text || text->empty()) return;
        for (const std::string& pid : split(*text, '\n')) {
            (void)write_file(leaf / "cgroup.procs", pid);
        }
    }
}

Status prepare_unified(CgroupHierarchy& tree, const std::string& group) {
    const fs::path root = tree.base;
    auto have = read_file(root / "cgroup.controllers");
    if (!have) return have.error();
    tree.controllers.clear();
    for (const std::string& name : split(*have, ' ')) {
        const std::string_view bare(name.data(), name.find_last_not_of('\n') + 1);
        if (std::ranges::find(kWantedUnified, bare) != kWantedUnified.end())
            tree.controllers.emplace(bare);
    }
    auto status = enable_controllers(root, tree);
    if (!status && !tree.controllers.empty()) {
        empty_root(root);
        status = enable_controllers(root, tree);
    }
    if (!status) {
        log::warn("cgroup v2 controllers cannot be used", {{"reason", status.error().message()}});
        tree.controllers.clear();
    }
    tree.base = root / group;
    if (::mkdir(tree.base.c_str(), 0755) < 0 && errno != EEXIST) {
        return last_error("mkdir " + tree.base.string());
    }
    return enable_controllers(tree.base, tree);
}

std::string quota(double cores) {
    return std::to_string(std::max<long>(1000, static_cast<long>(cores * 100'000)));
}

Status set_limits_v1(const CgroupHierarchy& tree, const fs::path& dir, const ResourceLimits& want) {
    if (want.cpu_cores > 0 && tree.controllers.contains("cpu")) {
        if (auto s = write_file(dir / "cpu.cfs_quota_us", quota(want.cpu_cores)); !s) return s;
    }
    if (want.memory_bytes > 0 && tree.controllers.contains("memory")) {
        const std::string bytes = std::to_string(want.memory_bytes);
        if (auto s = write_file(dir / "memory.limit_in_bytes", bytes); !s) return s;
        // Absent where the kernel does not account swap.
        (void)write_file(dir / "memory.memsw.limit_in_bytes", bytes);
    }
    if (want.pids > 0 && tree.controllers.contains("pids")) {
        return write_file(dir / "pids.max", std::to_string(want.pids));
    }
    return {};
}

Status set_limits_v2(const CgroupHierarchy& tree, const fs::path& dir, const ResourceLimits& want) {
    if (want.cpu_cores > 0 && tree.controllers.contains("cpu")) {
        if (auto s = write_file(dir / "cpu.max", quota(want.cpu_cores) + " 100000"); !s) return s;
    }
    if (want.memory_bytes > 0 && tree.controllers.contains("memory")) {
        if (auto s = write_file(dir / "memory.max", std::to_string(want.memory_bytes)); !s) {
            return s;
        }
        (void)write_file(dir / "memory.swap.max", "0");
    }
    if (want.pids > 0 && tree.controllers.contains("pids")) {
        return write_file(dir / "pids.max", std::to_string(want.pids));
    }
    return {};
}

Status limit_io_v2(const fs::path& dir, const std::string& device, const ResourceLimits& want) {
    std::string text = device;
    if (want.io_read_rate > 0) text += "rbps=" + std::to_string(want.io_read_rate) + " ";
    if (want.io_write_rate > 0) text += "wbps=" + std::to_string(want.io_write_rate);
    return write_file(dir / "io.max", text);
}

Status limit_io_v1(const fs::path& dir, const std::string& device, const ResourceLimits& want) {
    if (want.io_read_rate > 0) {
        auto status = write_file(dir / "blkio.throttle.read_bps_device",
                                 device + std::to_string(want.io_read_rate));
        if (!status) return status;
    }
    if (want.io_write_rate == 0) return {};
    return write_file(dir / "blkio.throttle.write_bps_device",
                      device + std::to_string(want.io_write_rate));
}

void kill_all(const fs::path& directory, bool unified) {
    if (unified && write_file(directory / "cgroup.kill", "1")) return;
    auto text = read_file(directory / "cgroup.procs");
    if (!text) return;
    for (const std::string& line : split(*text, '\n')) {
        const int pid = std::atoi(line.c_str());
        if (pid > 1) ::kill(pid, SIGKILL);
    }
}

}  // namespace

std::vector<CgroupHierarchy> find_hierarchies(std::string_view mounts) {
    std::vector<CgroupHierarchy> found;
    std::set<std::string> taken;
    bool unified = false;
    for (const std::string& line : split(mounts, '\n')) {
        const auto fields = split(line, ' ');
        if (fields.size() < 4) continue;
        CgroupHierarchy tree;
        tree.base = unescape(fields[1]);
        if (fields[2] == "cgroup2") {
            tree.unified = true;
            if (unified) continue;
            unified = true;
        } else if (fields[2] == "cgroup") {
            for (const std::string& option : split(fields[3], ',')) {
                const bool used = std::ranges::find(kWanted, option) != kWanted.end();
                if (used && taken.insert(option).second) tree.controllers.insert(option);
            }
            if (tree.controllers.empty()) continue;
            tree.on_demand = tree.controllers == std::set<std::string>{"blkio"};
        } else {
            continue;
        }
        found.push_back(std::move(tree));
    }
    return found;
}

bool can_hold_groups(const fs::path& directory) {
    return ::access(directory.c_str(), W_OK) == 0;
}

Result<CgroupTree> CgroupTree::prepare(const std::string& group, bool delegated) {
    auto mounts = read_file("/proc/self/mounts");
    if (!mounts) return mounts.error();
    CgroupTree result;
    for (CgroupHierarchy& tree : find_hierarchies(*mounts)) {
        if (delegated) {
            // Version 1 knows no safe delegation.
            if (!tree.unified) continue;
            tree.base = own_group(tree.base);
            if (::access((tree.base / "cgroup.procs").c_str(), W_OK) < 0) continue;
        }
        if (!can_hold_groups(tree.base)) {
            log::warn("cgroups cannot be made",
                      {{"path", tree.base.string()}, {"reason", std::strerror(errno)}});
            continue;
        }
        if (tree.unified) {
            if (auto status = prepare_unified(tree, group); !status) return status.error();
        } else {
            tree.base /= group;
            if (::mkdir(tree.base.c_str(), 0755) < 0 && errno != EEXIST) {
                return last_error("mkdir " + tree.base.string());
            }
        }
        result.hierarchies_.push_back(std::move(tree));
    }
    return result;
}

Result<CgroupTree> CgroupTree::find(const std::string& group) {
    auto mounts = read_file("/proc/self/mounts");
    if (!mounts) return mounts.error();
    CgroupTree result;
    for (CgroupHierarchy& tree : find_hierarchies(*mounts)) {
        tree.base /= group;
        if (tree.unified) {
            const std::string have = read_file_or_empty(tree.base / "cgroup.controllers");
            for (const std::string& name : split(have, ' '))
                tree.controllers.insert(name.substr(0, name.find('\n')));
        }
        result.hierarchies_.push_back(std::move(tree));
    }
    return result;
}

bool CgroupTree::limits(const std::string& controller) const {
    return std::ranges::any_of(hierarchies_, [&](const CgroupHierarchy& tree) {
        return tree.controllers.contains(controller);
    });
}

std::set<std::string> CgroupTree::names() const {
    std::set<std::string> found;
    for (const CgroupHierarchy& tree : hierarchies_) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(tree.base, error)) {
            if (entry.is_directory(error)) found.insert(entry.path().filename().string());
        }
    }
    return found;
}

Status CgroupTree::limit_processes(std::uint64_t most) const {
    for (const CgroupHierarchy& tree : hierarchies_) {
        if (!tree.controllers.contains("pids")) continue;
        return write_file(tree.base / "pids.max", std::to_string(most));
    }
    return {};
}

void CgroupTree::remove() const {
    for (const CgroupHierarchy& tree : hierarchies_) {
        if (::rmdir(tree.base.c_str()) < 0 && errno != ENOENT) {
            log::warn("cgroup stays behind",
                      {{"path", tree.base.string()}, {"reason", std::strerror(errno)}});
        }
    }
}

Result<SlotCgroup> SlotCgroup::make(const CgroupTree& tree, std::string name) {
    SlotCgroup made(tree, std::move(name), true);
    for (const CgroupHierarchy& hierarchy : tree.hierarchies()) {
        if (hierarchy.on_demand) continue;
        const fs::path path = hierarchy.base / made.name_;
        if (::mkdir(path.c_str(), 0755) < 0) return last_error("mkdir " + path.string());
        // Version 1 counts buffers of sockets apart from memory, and only from here on. Absent
        // where the kernel does not.
        if (!hierarchy.unified && hierarchy.controllers.contains("memory"))
            (void)write_file(path / "memory.kmem.tcp.limit_in_bytes", kSocketBuffers);
    }
    return made;
}

SlotCgroup SlotCgroup::adopt(const CgroupTree& tree, std::string name) {
    return {tree, std::move(name), false};
}

SlotCgroup::SlotCgroup(SlotCgroup&& other) noexcept
    : tree_(other.tree_), name_(std::move(other.name_)), owned_(other.owned_) {
    other.owned_ = false;
}

SlotCgroup::~SlotCgroup() {
    if (!owned_) return;
    if (auto status = remove(); !status) {
        log::warn("cgroup stays behind", {{"reason", status.error().message()}});
    }
}

Result<UniqueFd> SlotCgroup::unified_descriptor() const {
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        if (!tree.unified) continue;
        const fs::path path = tree.base / name_;
        UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!fd) return last_error("open " + path.string());
        return fd;
    }
    return UniqueFd();
}

Status SlotCgroup::attach(pid_t pid) const {
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        if (tree.unified || tree.on_demand) continue;
        auto status = write_file(tree.base / name_ / "cgroup.procs", std::to_string(pid));
        if (!status) return status;
    }
    return {};
}

Status SlotCgroup::set_limits(const ResourceLimits& limits) const {
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        const fs::path path = tree.base / name_;
        auto status =
            tree.unified ? set_limits_v2(tree, path, limits) : set_limits_v1(tree, path, limits);
        if (!status) return status;
    }
    return {};
}

Status SlotCgroup::limit_io(pid_t pid, const std::set<dev_t>& disks,
                            const ResourceLimits& limits) const {
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        const fs::path path = tree.base / name_;
        if (!tree.controllers.contains(tree.unified ? "io" : "blkio")) continue;
        if (tree.on_demand) {
            if (::mkdir(path.c_str(), 0755) < 0) return last_error("mkdir " + path.string());
            auto joined = write_file(path / "cgroup.procs", std::to_string(pid));
            if (!joined) return joined;
        }
        for (const dev_t disk : disks) {
            const std::string device =
                std::to_string(major(disk)) + ":" + std::to_string(minor(disk)) + " ";
            auto status = tree.unified ? limit_io_v2(path, device, limits)
                                       : limit_io_v1(path, device, limits);
            if (!status) return status;
        }
        return {};
    }
    return Error(ErrorCode::unsupported, "this host has no control group for disks");
}

void SlotCgroup::set_requests(double cpu_cores, std::uint64_t memory_bytes) const {
    // As Kubernetes turns requests into shares and weights.
    const auto shares = std::clamp<std::int64_t>(std::llround(cpu_cores * 1024), 2, 262'144);
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        const fs::path path = tree.base / name_;
        if (cpu_cores > 0 && tree.controllers.contains("cpu")) {
            const std::int64_t weight = 1 + (shares - 2) * 9999 / 262'142;
            (void)(tree.unified ? write_file(path / "cpu.weight", std::to_string(weight))
                                : write_file(path / "cpu.shares", std::to_string(shares)));
        }
        if (memory_bytes > 0 && tree.controllers.contains("memory")) {
            const char* file = tree.unified ? "memory.low" : "memory.soft_limit_in_bytes";
            (void)write_file(path / file, std::to_string(memory_bytes));
        }
    }
}

Status SlotCgroup::remove() {
    owned_ = false;
    Status result;
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        const fs::path path = tree.base / name_;
        // The dead of a v1 freezer die only when thawed.
        if (tree.controllers.contains("freezer") && !tree.unified) {
            (void)write_file(path / "freezer.state", "THAWED");
        }
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        while (::rmdir(path.c_str()) < 0 && errno != ENOENT) {
            if (errno != EBUSY || std::chrono::steady_clock::now() > deadline) {
                result = last_error("rmdir " + path.string());
                break;
            }
            kill_all(path, tree.unified);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }
    return result;
}

}  // namespace opensandbox::runtime::native
