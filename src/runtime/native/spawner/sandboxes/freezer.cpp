#include "runtime/native/spawner/sandboxes/freezer.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/kcmp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <ranges>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {
namespace {

std::vector<pid_t> children_of(pid_t pid) {
    std::vector<pid_t> found;
    const auto tasks = "/proc/" + std::to_string(pid) + "/task";
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
        std::istringstream children(read_file_or_empty(task.path() / "children"));
        for (pid_t child = 0; children >> child;)
            found.push_back(child);
    }
    return found;
}

/// The process and all below it, parents before their children. All processes of a pid namespace
/// are below its first one.
std::vector<pid_t> tree_of(pid_t first) {
    std::vector<pid_t> found{first};
    for (std::size_t at = 0; at < found.size(); ++at) {
        const std::vector<pid_t> children = children_of(found[at]);
        found.insert(found.end(), children.begin(), children.end());
    }
    return found;
}

/// "R", "S", "T", …; '\0' when there is none.
char state_of(pid_t pid) {
    const std::string stat = read_file_or_empty("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t end = stat.rfind(')');
    return end != std::string::npos && end + 2 < stat.size() ? stat[end + 2] : '\0';
}

/// Stopped, traced, or dead.
bool stands_still(pid_t pid) {
    const char state = state_of(pid);
    return state == 'T' || state == 't' || state == 'Z' || state == 'X' || state == '\0';
}

/// Whoever starts a program may have lent it its memory (vfork) and waits in the kernel until that
/// has begun: it cannot stop before a child that is stopped itself. What else waits there, for a
/// disk perhaps, has yet to stop.
bool lent_its_memory(pid_t pid) {
    if (state_of(pid) != 'D') return false;
    return std::ranges::any_of(children_of(pid), [&](pid_t child) {
        return state_of(child) == 'T' && ::syscall(SYS_kcmp, pid, child, KCMP_VM, 0, 0) == 0;
    });
}

bool has_freezer(const CgroupHierarchy& tree) {
    return tree.unified || tree.controllers.contains("freezer");
}

}  // namespace

Status ProcessFreezer::freeze() const {
    for (const pid_t pid : tree_of(first_)) {
        if (stands_still(pid)) continue;
        if (::kill(pid, SIGSTOP) < 0 && errno != ESRCH) return last_error("stop a process");
    }
    return {};
}

Status ProcessFreezer::thaw() const {
    for (const pid_t pid : std::views::reverse(tree_of(first_))) {
        if (::kill(pid, SIGCONT) < 0 && errno != ESRCH) return last_error("continue a process");
    }
    return {};
}

bool ProcessFreezer::frozen() const {
    return std::ranges::all_of(tree_of(first_),
                               [](pid_t pid) { return stands_still(pid) || lent_its_memory(pid); });
}

bool ProcessFreezer::asked() const {
    return state_of(first_) == 'T';
}

Freezer::Freezer(const CgroupTree& tree, const std::string& slot, pid_t first) : processes_(first) {
    for (const CgroupHierarchy& hierarchy : tree.hierarchies()) {
        if (!has_freezer(hierarchy) || unified_) continue;
        directory_ = hierarchy.base / slot;
        unified_ = hierarchy.unified;
    }
}

Status Freezer::freeze() const {
    if (directory_.empty()) return processes_.freeze();
    if (unified_) return write_file(directory_ / "cgroup.freeze", "1");
    return write_file(directory_ / "freezer.state", "FROZEN");
}

Status Freezer::thaw() const {
    if (directory_.empty()) return processes_.thaw();
    if (unified_) return write_file(directory_ / "cgroup.freeze", "0");
    return write_file(directory_ / "freezer.state", "THAWED");
}

bool Freezer::frozen() const {
    if (directory_.empty()) return processes_.frozen();
    if (!unified_) return read_file_or_empty(directory_ / "freezer.state").starts_with("FROZEN");
    const std::string events = read_file_or_empty(directory_ / "cgroup.events");
    return events.find("frozen 1") != std::string::npos;
}

bool Freezer::asked() const {
    if (directory_.empty()) return processes_.asked();
    if (!unified_) return !read_file_or_empty(directory_ / "freezer.state").starts_with("THAWED");
    return read_file_or_empty(directory_ / "cgroup.freeze").starts_with("1");
}

}  // namespace opensandbox::runtime::native
