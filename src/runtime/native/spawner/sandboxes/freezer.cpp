#include "runtime/native/spawner/sandboxes/freezer.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

namespace opensandbox::runtime::native {

namespace {

bool has_freezer(const CgroupHierarchy& tree) {
    return tree.unified || tree.controllers.contains("freezer");
}

}  // namespace

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
