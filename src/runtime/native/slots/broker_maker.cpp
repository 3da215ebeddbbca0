#include "runtime/native/slots/broker_maker.hpp"

#include "base/scope_exit.hpp"
#include "runtime/native/ground/kernel/id_map.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/ground/layer/overlay.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/broker_process.hpp"
#include "runtime/native/slots/slot_terms.hpp"

#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

/// What sessions change belongs to the sandbox's writable layer: it ends at the same size and goes
/// with it, and no snapshot has it.
Result<UniqueFd> open_session_layer(const Host& host, SlotId slot, pid_t pid) {
    const auto path = layer_directory(host.slot_directory(slot)) / kSessionLayer;
    if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + path.string());
    }
    auto space = user_namespace_of(pid);
    if (!space) return space.error();
    auto mount = clone_tree(path, space->get());
    if (!mount) return mount.error();
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
    if (auto s = check(::syscall(SYS_mount_setattr, mount->get(), "", AT_EMPTY_PATH, &attributes,
                                 sizeof attributes),
                       "mount_setattr");
        !s) {
        return s.error();
    }
    return mount;
}

/// By prlimit() only who has CAP_SYS_RESOURCE may ask, over whoever made the slot.
Result<rlimit> open_files_of(pid_t pid) {
    const std::string limits = read_file_or_empty("/proc/" + std::to_string(pid) + "/limits");
    constexpr std::string_view kName = "Max open files";
    const auto line = limits.find(kName);
    if (line == std::string::npos) {
        return Error(ErrorCode::unavailable, "limits of the agent: it has ended");
    }
    std::istringstream numbers(limits.substr(line + kName.size()));
    rlimit found{};
    if (!(numbers >> found.rlim_cur >> found.rlim_max)) {
        return Error(ErrorCode::internal, "limits of the agent: not a number");
    }
    return found;
}

/// As clone_process(), into the pid namespace of another process.
Result<ClonedChild> clone_beside(int agent, int cgroup) {
    const UniqueFd own(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
    if (!own) return last_error("open the own pid namespace");
    if (auto s = check(::setns(agent, CLONE_NEWPID), "setns pid"); !s) return s.error();
    auto child = clone_process(CLONE_PARENT, cgroup);
    if (child && child->pid == 0) return child;
    if (::setns(own.get(), CLONE_NEWPID) < 0) {
        // Whatever this worker clones from here on would be in the sandbox.
        if (child) (void)signal_process(child->pidfd.get(), SIGKILL);
        ::_exit(1);
    }
    return child;
}

}  // namespace

Result<BrokerParts> start_broker(const Host& host, int program, SlotId slot, int control, int agent,
                                 pid_t pid) {
    auto layer = open_session_layer(host, slot, pid);
    if (!layer) return layer.error().within("layer of sessions");
    const auto cgroup = SlotCgroup::adopt(host.cgroups, slot_name(slot));
    auto place = cgroup.unified_descriptor();
    if (!place) return place.error();
    auto pair = message_pair();
    if (!pair) return pair.error();
    BrokerSeed seed;
    seed.control = control;
    seed.agent = agent;
    seed.layer = layer->get();
    seed.terms = pair->second.get();
    auto open_files = open_files_of(pid);
    if (!open_files) return open_files.error();
    seed.open_files = *open_files;
    auto child = clone_beside(agent, place->get());
    if (!child) return child.error();
    if (child->pid == 0) run_broker_process(program, seed);
    BrokerParts parts;
    parts.pid = child->pid;
    parts.pidfd = std::move(child->pidfd);
    // Without the word it ends by itself, and its parent has to know of it in any case.
    if (auto s = cgroup.attach(child->pid); !s) {
        (void)signal_process(parts.pidfd.get(), SIGKILL);
        return parts;
    }
    // It was cloned from a process that steps back for others.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(child->pid), 0);
    (void)send_message(pair->first.get(), encode(slot_terms(host, slot)));
    return parts;
}

}  // namespace opensandbox::runtime::native
