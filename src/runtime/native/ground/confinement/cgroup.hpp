#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/runtime.hpp"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::native {

/// One mounted cgroup hierarchy that we use.
struct CgroupHierarchy {
    std::filesystem::path base;         ///< our directory in it, holding one directory a slot
    bool unified = false;               ///< cgroup v2
    std::set<std::string> controllers;  ///< of cpu, memory, pids, freezer; io of v2, blkio of v1
    /// Slots go in only when they need it: each hierarchy costs its time.
    bool on_demand = false;
};

/// Finds hierarchies in the text of /proc/self/mounts. Meets hosts with v1 only, v2 only and both:
/// of v1 the hierarchies with a controller we use, of v2 the one tree there is. Where two carry the
/// same controller the first wins. `base` is the mount point: the caller appends its directory.
std::vector<CgroupHierarchy> find_hierarchies(std::string_view mounts);

/// Whether this process may make groups below `directory`; else errno says why not. Containers have
/// hierarchies mounted read-only.
bool can_hold_groups(const std::filesystem::path& directory);

/// Our directory in each cgroup hierarchy of this host that can hold it.
class CgroupTree {
  public:
    /// Makes `group` in every hierarchy and turns the controllers on below it. In a container whose
    /// v2 root holds processes these move to a leaf beside ours first, or v2 would refuse.
    /// `delegated`: an ordinary user has no more than what was delegated to the cgroup it runs in,
    /// which may be nothing; that is no error.
    static Result<CgroupTree> prepare(const std::string& group, bool delegated = false);
    /// What prepare() made, for reading; changes nothing.
    static Result<CgroupTree> find(const std::string& group);

    [[nodiscard]] const std::vector<CgroupHierarchy>& hierarchies() const { return hierarchies_; }
    /// Whether some hierarchy limits this ("cpu", "memory", "pids").
    [[nodiscard]] bool limits(const std::string& controller) const;
    /// Names of the slots' directories in any hierarchy.
    [[nodiscard]] std::set<std::string> names() const;
    /// What all slots may have together, in processes and threads.
    Status limit_processes(std::uint64_t most) const;
    /// Removes our directories; they must be empty.
    void remove() const;

  private:
    std::vector<CgroupHierarchy> hierarchies_;
};

/// Owns the cgroups of one slot, of that name in every hierarchy. Borrows the tree.
class SlotCgroup {
  public:
    /// Makes fresh directories; a v2 directory that ever saw cgroup.kill would kill what is cloned
    /// into it, so a name that exists is a conflict.
    static Result<SlotCgroup> make(const CgroupTree& tree, std::string name);
    /// Takes over directories that another process made; removes them when asked only.
    static SlotCgroup adopt(const CgroupTree& tree, std::string name);
    SlotCgroup(SlotCgroup&& other) noexcept;
    SlotCgroup& operator=(SlotCgroup&&) = delete;
    ~SlotCgroup();

    /// The v2 directory to clone into; empty on hosts without v2.
    [[nodiscard]] Result<UniqueFd> unified_descriptor() const;
    /// Moves a process into the v1 hierarchies.
    Status attach(pid_t pid) const;
    /// 0 leaves a ceiling as it is. Swap counts as memory.
    Status set_limits(const ResourceLimits& limits) const;
    /// Bytes a second from and to each of these disks (device numbers); 0 leaves it alone. `pid` is
    /// the slot's only process. Version 1 does not see what is written later out of the page cache.
    /// `unsupported` where the host cannot limit it.
    Status limit_io(pid_t pid, const std::set<dev_t>& disks, const ResourceLimits& limits) const;
    /// What it gets of the processor when all want some, and how much memory is taken from it last.
    /// 0 leaves a default; what the host cannot weigh is left out.
    void set_requests(double cpu_cores, std::uint64_t memory_bytes) const;
    /// What the cgroup counted, also after its processes are gone. Nothing of disk and network.
    [[nodiscard]] Usage usage() const;
    /// Ends what still runs in it and removes the directories; retries for up to two seconds, since
    /// the kernel lets go of the dead a little later.
    Status remove();
    /// Leaves the directories to another owner.
    void release() { owned_ = false; }

  private:
    SlotCgroup(const CgroupTree& tree, std::string name, bool owned)
        : tree_(&tree), name_(std::move(name)), owned_(owned) {}

    const CgroupTree* tree_;
    std::string name_;
    bool owned_;
};

}  // namespace opensandbox::runtime::native
