#include "runtime/native/sandbox/process_freezer.hpp"

#include "runtime/native/kernel/kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <ranges>
#include <sstream>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

/// The process and all below it, parents before their children. All processes of a pid namespace
/// are below its first one.
std::vector<pid_t> tree_of(pid_t first) {
    std::vector<pid_t> found{first};
    for (std::size_t at = 0; at < found.size(); ++at) {
        const auto tasks = "/proc/" + std::to_string(found[at]) + "/task";
        std::error_code error;
        for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
            std::istringstream children(read_file_or_empty(task.path() / "children"));
            for (pid_t child = 0; children >> child;)
                found.push_back(child);
        }
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
/// has begun: it cannot stop before a child that is stopped itself.
bool waits_for_stopped_child(pid_t pid) {
    if (state_of(pid) != 'D') return false;
    const std::vector<pid_t> tree = tree_of(pid);
    return std::ranges::any_of(tree | std::views::drop(1),
                               [](pid_t child) { return state_of(child) == 'T'; });
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
    return std::ranges::all_of(tree_of(first_), [](pid_t pid) {
        return stands_still(pid) || waits_for_stopped_child(pid);
    });
}

bool ProcessFreezer::asked() const {
    return state_of(first_) == 'T';
}

}  // namespace opensandbox::runtime::native
