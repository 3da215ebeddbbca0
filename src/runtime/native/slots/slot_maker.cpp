#include "runtime/native/slots/slot_maker.hpp"

#include "base/remove_tree.hpp"
#include "base/scope_exit.hpp"
#include "runtime/native/ground/kernel/id_map.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/own_program.hpp"
#include "runtime/native/ground/layer/discarded_layers.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/ground/layer/overlay.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/host/gvisor_program.hpp"
#include "runtime/native/inside/slot_process.hpp"
#include "runtime/native/network/gateway_addresses.hpp"
#include "runtime/native/network/link_addresses.hpp"
#include "runtime/native/slots/slot_terms.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr int kBlankTimeoutMs = 15'000;

constexpr std::uint64_t kSlotNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
                                          CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                                          CLONE_NEWCGROUP;

/// The root of an upper is the root of the mount, whose mode everybody inside sees.
Status make_layer(const std::filesystem::path& directory) {
    if (::mkdir(directory.c_str(), 0755) < 0) {
        if (errno == EEXIST) return Error(ErrorCode::conflict, directory.string() + " exists");
        return last_error("mkdir " + directory.string());
    }
    return check(::chmod(directory.c_str(), 0755), "chmod " + directory.string());
}

}  // namespace

Status make_layers(const std::filesystem::path& path) {
    // A layer, and the directory that overlayfs works in.
    for (const char* name : {"u", "w"})
        if (auto s = make_layer(path / name); !s) return s;
    // Files that every sandbox gets mounted over: were they missing in the image, making them while
    // somebody waits would cost more than the mounts.
    const auto etc = path / "u" / "etc";
    if (::mkdir(etc.c_str(), 0755) < 0 || ::chmod(etc.c_str(), 0755) < 0) {
        return last_error("mkdir " + etc.string());
    }
    for (const char* name : {"hosts", "hostname", "resolv.conf"}) {
        const auto file = etc / name;
        const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
        if (!fd || ::fchmod(fd.get(), 0644) < 0) return last_error("create " + file.string());
    }
    return {};
}

Status make_usr_layers(const std::filesystem::path& path) {
    for (const char* name : {"u2", "w2"}) {
        auto made = make_layer(path / name);
        if (!made && made.error().code() != ErrorCode::conflict) return made;
    }
    return {};
}

namespace {

/// Into a namespace that another user made only who has this right may look.
bool may_trace() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> sets{};
    if (::syscall(SYS_capget, &header, sets.data()) < 0) return false;
    return (sets[0].effective >> CAP_SYS_PTRACE & 1U) != 0;
}

/// What a user namespace has of inotify, pending signals, timers and message queues the kernel
/// counts for whoever made it, too: a user of the slot's own, not root. Only where this namespace
/// has that user and root may trace; an ordinary user's has others, and a limit for each
/// (share_limits_of_user).
Result<ClonedChild> clone_slot(const Host& host, SlotId slot, int cgroup) {
    const auto act_as = [](std::uint32_t user) { return ::syscall(SYS_setresuid, -1, user, -1); };
    if (may_trace()) {
        for (const std::uint32_t user : host.makers(slot))
            if (act_as(user) == 0) break;
    }
    auto child = clone_process(kSlotNamespaces | CLONE_PARENT, cgroup);
    // In the child nobody of this namespace is known yet: it becomes its own root.
    if (child && child->pid == 0) return child;
    if (act_as(0) < 0) return last_error("become root again");
    return child;
}

Status make_directory(const Host& host, const std::filesystem::path& path) {
    if (::mkdir(path.c_str(), 0700) < 0) return last_error("mkdir " + path.string());
    // The entrypoint's output goes here.
    const UniqueFd output(
        ::open((path / kOutputFile).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!output) return last_error("create " + (path / kOutputFile).string());
    const std::uint64_t bytes = host.options.layer_bytes;
    if (bytes == 0) return make_layers(path);
    auto mounted = mount_layer(host.options.state_directory, path, bytes);
    if (!mounted) return mounted.error().within("writable layer");
    return make_layers(path / kLayerMount);
}

/// Waits until the blank says that it is one.
Status await_blank(int control) {
    pollfd item{control, POLLIN, 0};
    int ready;
    do {
        ready = ::poll(&item, 1, kBlankTimeoutMs);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return Error(ErrorCode::timeout, "slot did not become ready");
    auto received = receive_message(control);
    if (!received) return received.error();
    if (received->closed) return Error(ErrorCode::internal, "slot ended before it was ready");
    auto message = decode(received->bytes);
    if (!message) return message.error();
    if (auto* failed = std::get_if<FailedReply>(&*message)) return failed->error;
    if (!std::holds_alternative<BlankReady>(*message)) {
        return Error(ErrorCode::protocol, "slot: unexpected message");
    }
    return {};
}

/// What the slot itself said before it ended, if it did: what its maker met then is no more than a
/// consequence.
Error reason(int control, const Error& met) {
    pollfd item{control, POLLIN, 0};
    if (::poll(&item, 1, 0) <= 0) return met;
    const auto blank = await_blank(control);
    return blank ? met : blank.error().within("slot");
}

}  // namespace

Result<SlotMaker> SlotMaker::open(const Host& host) {
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    auto program = open_own_program();
    if (!program) return program.error();
    return SlotMaker(host, std::move(*routes), std::move(*program));
}

Status SlotMaker::add_link(SlotId slot, pid_t pid) {
    const std::string name = host_->link_name(slot);
    auto link = routes_.create_veth({.host_name = name,
                                     .host_mac = kHostMac,
                                     .peer_name = "eth0",
                                     .peer_mac = kSlotMac,
                                     .peer_namespace = net::NetworkNamespace::of_process(pid),
                                     .mtu = host_->mtu});
    if (!link) return link.error();
    net::RouteChanges changes;
    const auto lead_to = [&](const net::IpAddress& address, const net::IpAddress& gateway) {
        changes
            .add_route({.destination = address,
                        .prefix = address.is_v6() ? 128U : 32U,
                        .link = *link,
                        .source = gateway})
            .add_neighbour(*link, address, kSlotMac);
    };
    // Without an address nothing is sent, and the firewall lets nothing in. The setting that
    // switches IPv6 off spins in the kernel for as long as others change links.
    if (host_->ipv6_links) changes.without_own_addresses(*link);
    if (host_->range6) {
        // Some hosts believe routers also where they forward.
        (void)write_file("/proc/sys/net/ipv6/conf/" + name + "/accept_ra", "0");
        lead_to(*host_->address6(slot), host_->gateway6());
    }
    lead_to(host_->address(slot), host_->gateway());
    return routes_.apply(changes);
}

Status SlotMaker::connect(SlotId slot, pid_t pid) {
    auto connected = add_link(slot, pid);
    if (connected || connected.error().code() == ErrorCode::conflict) return connected;
    // A gateway's address may have gone with another server of the same range.
    if (auto added = add_gateways(routes_, host_->gateways()); !added) return added;
    if (auto removed = disconnect(slot); !removed) return removed;
    return add_link(slot, pid);
}

Status SlotMaker::disconnect(SlotId slot) {
    return host_->network() ? routes_.delete_link(host_->link_name(slot)) : Status();
}

Result<UniqueFd> SlotMaker::overlay_usr(const SlotParts& parts) const {
    const std::string usr = "/usr";
    OverlaySpec spec;
    spec.lowers = {&usr, 1};
    spec.user_namespace = parts.user_namespace.get();
    spec.shift_lowers = host_->shift_usr;
    spec.base = parts.base.get();
    spec.upper = "u2";
    spec.work = "w2";
    spec.id_base = host_->id_base(parts.slot);
    spec.user_attributes = host_->options.rootless;
    auto overlay = build_overlay(spec);
    if (!overlay) return overlay.error().within("/usr");
    return std::move(overlay->mount);
}

Status SlotMaker::tell_to_begin(int control) const {
    const std::string message = encode(BecomeBlank{});
    if (!host_->gvisor()) return send_message(control, message);
    auto programs = open_gvisor_programs(host_->options.runsc, host_->options.own_directory());
    if (!programs) return programs.error().within("gVisor");
    return send_message(control, message, std::array{programs->runsc.get(), programs->agent.get()});
}

Result<SlotParts> SlotMaker::make(SlotId slot, bool usr) {
    cloned_ = 0;
    const auto directory = host_->slot_directory(slot);
    // Undone in reverse order of these declarations: the process first, its directory last.
    ScopeExit directory_guard([&] {
        (void)unmount_layer(directory);
        (void)remove_tree(directory);
    });
    if (auto s = make_directory(*host_, directory); !s) return s.error();
    auto cgroup = SlotCgroup::make(host_->cgroups, slot_name(slot));
    if (!cgroup) return cgroup.error().within("cgroup");
    ScopeExit link_guard([&] { (void)disconnect(slot); });
    auto pair = message_pair();
    if (!pair) return pair.error();
    auto place = cgroup->unified_descriptor();
    if (!place) return place.error();
    auto child = clone_slot(*host_, slot, place->get());
    if (!child) return child.error();
    if (child->pid == 0) run_slot(program_.get(), std::move(pair->second));
    pair->second.reset();
    cloned_ = child->pid;
    ScopeExit process_guard([&] { (void)signal_process(child->pidfd.get(), SIGKILL); });

    SlotParts parts;
    parts.slot = slot;
    parts.pid = child->pid;
    if (auto s = cgroup->attach(child->pid); !s) return s.error().within("cgroup");
    if (auto s = map_ids(child->pid, host_->id_base(slot), host_->ids); !s) return s.error();
    auto user_namespace = user_namespace_of(child->pid);
    if (!user_namespace) return user_namespace.error();
    // While it starts anew, the rest is made.
    if (auto s = send_message(pair->first.get(), encode(slot_terms(*host_, slot))); !s) {
        return s.error();
    }
    auto base =
        clone_tree(layer_directory(directory), host_->shift_ids ? user_namespace->get() : -1);
    if (!base) return base.error();
    parts.user_namespace = std::move(*user_namespace);
    parts.base = std::move(*base);
    if (usr) {
        if (auto s = make_usr_layers(layer_directory(directory)); !s) return s.error();
        auto overlay = overlay_usr(parts);
        if (!overlay) return overlay.error();
        parts.usr = std::move(*overlay);
    }
    if (host_->network()) {
        if (auto s = connect(slot, child->pid); !s) {
            return reason(pair->first.get(), s.error().within("network"));
        }
    }
    if (auto s = tell_to_begin(pair->first.get()); !s) {
        return reason(pair->first.get(), s.error());
    }
    if (auto s = await_blank(pair->first.get()); !s) return s.error().within("slot");
    // It was cloned from a process that steps back for others; a sandbox does not.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(child->pid), 0);

    process_guard.dismiss();
    link_guard.dismiss();
    cgroup->release();
    directory_guard.dismiss();
    parts.control = std::move(pair->first);
    parts.pidfd = std::move(child->pidfd);
    return parts;
}

Status SlotMaker::remove(SlotId slot, bool files) {
    // Each is tried whatever became of the others; the first failure is told.
    auto link = disconnect(slot);
    auto cgroup = SlotCgroup::adopt(host_->cgroups, slot_name(slot)).remove();
    const auto path = host_->slot_directory(slot);
    const DiscardedLayers discarded(host_->options.sandboxes_directory());
    Status directory;
    // On a full disk there may be no room to put something aside.
    if (files || !discarded.take(path)) {
        // Before the files: those of another file system must not be taken for the slot's.
        directory = unmount_layer(path);
        if (directory) directory = remove_tree(path);
    }
    if (!link) return link;
    if (!cgroup) return cgroup;
    return directory;
}

}  // namespace opensandbox::runtime::native
