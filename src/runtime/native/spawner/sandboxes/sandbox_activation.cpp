#include "base/remove_tree.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/ground/layer/overlay.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/volume_mount.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

/// What turns a blank into the sandbox that was asked for, on the spawner's side.
namespace opensandbox::runtime::native {

/// What the slot gets: the listener, its root, and for the host's image a /usr.
Result<std::vector<UniqueFd>> SandboxTable::build_parts(Sandbox& sandbox) const {
    std::vector<UniqueFd> out;
    auto listener = host_->listen(host_->options.publish_host, sandbox.port);
    if (!listener) return listener.error().within("listener");
    out.push_back(std::move(*listener));
    std::vector<std::string> lowers;
    for (const std::string& name : sandbox.snapshot_layers)
        lowers.push_back((snapshots_->files().layer(name) / "u").string());
    std::ranges::copy(sandbox.request.plan.image.layers, std::back_inserter(lowers));
    OverlaySpec spec;
    spec.lowers = lowers;
    spec.user_namespace = sandbox.parts.user_namespace.get();
    spec.shift_lowers = host_->shift_ids;
    spec.base = sandbox.parts.base.get();
    spec.id_base = host_->id_base(sandbox.parts.slot);
    spec.user_attributes = host_->options.rootless;
    auto root = build_overlay(spec);
    if (!root) return root.error().within("root");
    out.push_back(std::move(root->mount));
    sandbox.scaffold = std::move(root->scaffold);
    const auto output = host_->slot_directory(sandbox.parts.slot) / output_file;
    out.emplace_back(::open(output.c_str(), O_RDWR | O_CLOEXEC));
    if (!out.back()) return last_error("open " + output.string());
    if (host_->gvisor()) {
        const auto end = host_->slot_directory(sandbox.parts.slot) / gvisor_end_file;
        out.emplace_back(::open(end.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        if (!out.back()) return last_error("open " + end.string());
    }
    const SandboxPlan& plan = sandbox.request.plan;
    if (!plan.image.usr.empty()) {
        if (plan.image.usr != "/usr") {
            return Error(ErrorCode::unsupported, "usr: only the host's own can be shared");
        }
        if (auto s = restore_usr(sandbox); !s) return s.error().within("/usr");
        out.push_back(std::move(sandbox.parts.usr));
    }
    sandbox.lends = std::ranges::any_of(sandbox.request.volumes, &VolumeMount::reachable);
    for (const VolumeMount& volume : sandbox.request.volumes) {
        if (volume.source.empty()) continue;
        auto mount =
            make_volume_mount(volume, host_->shift_ids ? sandbox.parts.user_namespace.get() : -1);
        if (!mount) return mount.error();
        out.push_back(std::move(*mount));
    }
    for (const std::uint16_t inside : plan.network.published) {
        std::uint16_t outside = 0;
        auto published = host_->listen(host_->options.publish_host, outside);
        if (!published) return published.error().within("published port");
        out.push_back(std::move(*published));
        sandbox.published.emplace_back(inside, outside);
    }
    return out;
}

/// The blank brings an overlay over the host's /usr; one that snapshots changed is built anew.
Status SandboxTable::restore_usr(Sandbox& sandbox) const {
    std::vector<std::string> lowers;
    for (const std::string& name : sandbox.snapshot_layers) {
        const auto path = snapshots_->files().layer(name) / "u2";
        if (::access(path.c_str(), F_OK) == 0) lowers.push_back(path.string());
    }
    if (lowers.empty() && sandbox.parts.usr) return {};
    lowers.emplace_back("/usr");
    // Two overlays cannot share a writable layer.
    sandbox.parts.usr.reset();
    const auto layers = layer_directory(host_->slot_directory(sandbox.parts.slot));
    // The kernel mounts none over the working directory of one that was never written out.
    if (auto s = remove_tree(layers / "w2"); !s) return s;
    if (auto s = make_usr_layers(layers); !s) return s;
    OverlaySpec spec;
    spec.lowers = lowers;
    spec.user_namespace = sandbox.parts.user_namespace.get();
    spec.shift_lowers = host_->shift_usr;
    spec.base = sandbox.parts.base.get();
    spec.upper = "u2";
    spec.work = "w2";
    spec.id_base = host_->id_base(sandbox.parts.slot);
    spec.user_attributes = host_->options.rootless;
    auto usr = build_overlay(spec);
    if (!usr) return usr.error();
    sandbox.parts.usr = std::move(usr->mount);
    std::ranges::move(usr->scaffold, std::back_inserter(sandbox.scaffold));
    return {};
}

/// Blanks have writable layers of the usual size; one that was asked for with another gets it now.
Status SandboxTable::fit_layer(Sandbox& sandbox) const {
    const std::uint64_t wanted = sandbox.request.plan.limits.disk_bytes;
    if (wanted == 0 || wanted == host_->options.layer_bytes) return {};
    if (host_->options.rootless) {
        return Error(ErrorCode::unsupported, "SANDBOX::INVALID_PARAMETER",
                     "resourceLimits.ephemeral-storage: only root's server can limit writable "
                     "layers.");
    }
    const auto directory = host_->slot_directory(sandbox.parts.slot);
    // What stands on the old one goes first.
    sandbox.parts.usr.reset();
    sandbox.parts.base.reset();
    if (auto s = unmount_layer(directory); !s) return s;
    for (const char* name : {"u", "w", "u2", "w2", layer_mount}) {
        if (auto s = remove_tree(directory / name); !s) return s;
    }
    const auto image = directory / layer_file;
    if (::unlink(image.c_str()) < 0 && errno != ENOENT) {
        return last_error("remove " + image.string());
    }
    if (auto s = mount_layer(host_->options.state_directory, directory, wanted); !s) return s;
    const auto layer = layer_directory(directory);
    if (auto s = make_layers(layer); !s) return s;
    auto base = clone_tree(layer, host_->shift_ids ? sandbox.parts.user_namespace.get() : -1);
    if (!base) return base.error();
    sandbox.parts.base = std::move(*base);
    return {};
}

Status SandboxTable::set_limits(const Sandbox& sandbox) const {
    const CreateRequest& request = sandbox.request;
    const ResourceLimits& limits = request.plan.limits;
    const auto cgroup = SlotCgroup::adopt(host_->cgroups, slot_name(sandbox.parts.slot));
    if (auto s = cgroup.set_limits(limits); !s) return s;
    cgroup.set_requests(request.cpu_request, request.memory_request);
    if (limits.io_read_rate == 0 && limits.io_write_rate == 0) return {};
    std::set<dev_t> disks;
    const auto directory = host_->slot_directory(sandbox.parts.slot);
    for (const auto& path : {host_->options.state_directory, layer_directory(directory)}) {
        struct stat info{};
        if (::stat(path.c_str(), &info) < 0) return last_error("look at " + path.string());
        if (major(info.st_dev) == 0) {
            return Error(ErrorCode::unsupported, "SANDBOX::INVALID_PARAMETER",
                         "resourceLimits.io-read-rate, io-write-rate: the state directory lies on "
                         "no disk of its own.");
        }
        disks.insert(info.st_dev);
    }
    return cgroup.limit_io(sandbox.parts.pid, disks, limits);
}

Status SandboxTable::join_network(const Sandbox& sandbox, const std::string& network,
                                  const std::string& hostname) {
    if (network.empty()) return {};
    const SlotParts& parts = sandbox.parts;
    return networks_->join(parts.slot, parts.address6, network, {hostname, sandbox.id});
}

/// On the host's end of the link, where nobody inside can change it.
Status SandboxTable::choose_network(const Sandbox& sandbox) {
    const NetworkChoice& network = sandbox.request.plan.network;
    const std::uint64_t rate = sandbox.request.plan.limits.network_rate;
    const SlotId slot = sandbox.parts.slot;
    if (!host_->network()) {
        if (rate == 0 && network.shared.empty()) return {};
        return Error(ErrorCode::unsupported, "SANDBOX::INVALID_PARAMETER",
                     "sandboxes of this server have their loopback only; opensandbox "
                     "doctor tells why.");
    }
    if (network.none || rate > 0) {
        auto routes = net::RouteSocket::open();
        if (!routes) return routes.error();
        auto link = routes->link_index(host_->link_name(slot));
        if (!link) return link.error();
        auto done = network.none ? routes->set_down(*link) : routes->limit_rate(*link, rate);
        if (!done) return done;
    }
    return join_network(sandbox, network.shared, network.hostname);
}

Status SandboxTable::activate(Sandbox& sandbox) {
    sandbox.parts.address6 = host_->address6(sandbox.parts.slot);
    if (auto s = fit_layer(sandbox); !s) return s.error().within("writable layer");
    auto built = build_parts(sandbox);
    if (!built) return built.error();
    if (auto s = set_limits(sandbox); !s) {
        return s.error().wire().empty() ? s.error().within("limits") : s.error();
    }
    if (auto s = choose_network(sandbox); !s) return s.error().within("network");
    SandboxDescription description = describe(sandbox.request);
    description.published = sandbox.published;
    std::string bytes = encode(sandbox.request);
    std::vector<int> descriptors;
    for (const UniqueFd& fd : *built)
        descriptors.push_back(fd.get());
    auto sent = send_message(sandbox.parts.control.get(), bytes, descriptors);
    // The token is the slot's alone from here on: later slots are copies of this process.
    ::explicit_bzero(bytes.data(), bytes.size());
    ::explicit_bzero(sandbox.request.agent_token.data(), sandbox.request.agent_token.size());
    sandbox.request = {};
    if (!sent) return sent.error().within("slot");
    // What listens is the slot's alone: it must end with the slot, not with the mounts' remains.
    const auto is_listener = [](const UniqueFd& fd) {
        struct stat info{};
        return ::fstat(fd.get(), &info) == 0 && S_ISSOCK(info.st_mode);
    };
    std::erase_if(*built, is_listener);
    std::ranges::move(*built, std::back_inserter(sandbox.scaffold));
    // A warm slot is nobody's yet: it ends with this process, and nobody has to know of it.
    if (sandbox.id.empty()) return {};
    return write_down(sandbox, description);
}

/// While the slot works: what a spawner to come has to know.
Status SandboxTable::write_down(Sandbox& sandbox, const SandboxDescription& description) {
    if (auto s = write_description(host_->slot_directory(sandbox.parts.slot), description); !s) {
        return s;
    }
    sandbox.start_time = process_start_time(sandbox.parts.pid).value_or(0);
    return journal_.write(journal_entry(sandbox));
}

}  // namespace opensandbox::runtime::native
