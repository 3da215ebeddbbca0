#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/ground/layer/overlay.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/inside/volume_mount.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

/// The spawner's side of a create: what turns a blank into the sandbox that was asked for.
namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// A slot that has not answered by then is given up.
constexpr auto kStartTimeout = 30s;

}  // namespace

void SandboxTable::create(CreateRequest request, Created done) {
    if (sandboxes_.contains(request.id)) {
        done(Error(ErrorCode::conflict, "sandbox " + request.id + " exists already"));
        return;
    }
    auto sandbox = std::make_shared<Sandbox>();
    sandbox->id = request.id;
    sandbox->snapshot_layers = request.plan.snapshot_layers;
    sandbox->digest = request.plan.image.digest;
    const auto allowed = kStartTimeout + std::chrono::seconds(request.start_seconds);
    sandbox->claims = request.plan.claims;
    sandbox->own_claims = request.plan.own_claims;
    sandbox->request = std::move(request);
    sandbox->created = std::move(done);
    sandboxes_.emplace(sandbox->id, sandbox);
    pool_->begin_service();
    pool_->note_image(!sandbox->request.plan.image.usr.empty());
    if (begin_warm(sandbox)) {
        if (sandbox->failure) return;
        follow_start(sandbox, allowed);
        if (sandbox->request.egress.wanted) guard_first(sandbox);
        return;
    }
    pool_->take([this, sandbox, allowed](Result<SlotParts> parts) {
        if (!parts) {
            sandbox->failure = parts.error();
            forget(sandbox, {});
            return;
        }
        sandbox->state = State::starting;
        sandbox->parts = std::move(*parts);
        begin(sandbox, allowed);
    });
}

/// It has its slot; what that is to be is told once its packets are judged.
void SandboxTable::begin(const Entry& sandbox, EventLoop::Clock::duration allowed) {
    if (!sandbox->destroyed.empty()) {
        return fail(sandbox, Error(ErrorCode::cancelled, "destroyed meanwhile"));
    }
    if (sandbox->request.egress.wanted) {
        follow_start(sandbox, allowed);
        return guard_first(sandbox);
    }
    if (auto status = activate(*sandbox); !status) return fail(sandbox, status.error());
    follow_start(sandbox, allowed);
}

void SandboxTable::guard_first(const Entry& sandbox) {
    GuardRecord record;
    record.id = sandbox->id;
    record.link = host_->link_name(sandbox->parts.slot);
    record.addresses.push_back(host_->address(sandbox->parts.slot).to_string());
    if (const auto six = host_->address6(sandbox->parts.slot)) {
        record.addresses.push_back(six->to_string());
    }
    record.egress = sandbox->request.egress;
    egress_->guard(std::move(record),
                   [this, weak = std::weak_ptr(sandbox)](Result<std::string> authority) {
                       if (const auto held = weak.lock()) on_guarded(held, std::move(authority));
                   });
}

void SandboxTable::on_guarded(const Entry& sandbox, Result<std::string> authority) {
    if (sandbox->state != State::starting || sandbox->failure) return;
    if (!authority) return fail(sandbox, authority.error());
    // The slot has no use for the rest.
    sandbox->request.egress = {};
    sandbox->request.authority = std::move(*authority);
    auto status = sandbox->from_warm ? settle_warm(*sandbox) : activate(*sandbox);
    if (!status) fail(sandbox, status.error());
}

/// Tells the slot what it is from now on.
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

/// The slot has all it needs; it answers or dies.
void SandboxTable::follow_start(const Entry& sandbox, EventLoop::Clock::duration allowed) {
    sandbox->control_watch = loop_->watch(sandbox->parts.control.get(), EPOLLIN,
                                          [this, sandbox](std::uint32_t) { on_slot(sandbox); });
    watch_death(sandbox);
    loop_->run_after(allowed, [this, weak = std::weak_ptr(sandbox)] {
        const auto late = weak.lock();
        if (late && late->state == State::starting) {
            fail(late, Error(ErrorCode::timeout, "the sandbox did not start in time"));
        }
    });
}

void SandboxTable::on_slot(const Entry& sandbox) {
    auto received = receive_message(sandbox->parts.control.get());
    const auto message =
        received && !received->closed ? decode(received->bytes) : Result<Message>(Error());
    if (message && std::holds_alternative<SandboxReady>(*message)) return on_ready(sandbox);
    if (message) {
        if (const auto* failed = std::get_if<FailedReply>(&*message)) {
            return fail(sandbox, failed->error);
        }
    }
    fail(sandbox, Error(ErrorCode::internal, "the sandbox ended before it was ready"));
}

void SandboxTable::on_ready(const Entry& entry) {
    Sandbox& sandbox = *entry;
    sandbox.control_watch.reset();
    offer_broker(entry);
    sandbox.parts.user_namespace.reset();
    // Dissolving mounts costs; that waits for a quiet moment.
    auto scaffold = std::make_shared<std::vector<UniqueFd>>(std::move(sandbox.scaffold));
    scaffold->push_back(std::move(sandbox.parts.base));
    scaffold->push_back(std::move(sandbox.parts.usr));
    loop_->run_after(30ms, [this, scaffold] { pool_->discard(std::move(*scaffold)); });
    if (sandbox.state != State::starting) return;
    sandbox.state = State::running;
    HostPorts ports;
    ports.agent = sandbox.port;
    for (const auto& [inside, outside] : sandbox.published)
        ports.published.push_back(outside);
    if (egress_->guards(sandbox.id)) ports.egress = host_->egress_sockets.api_port;
    answer(sandbox, std::move(ports));
}

void SandboxTable::answer(Sandbox& sandbox, Result<HostPorts> ports) {
    if (!sandbox.created) return;
    pool_->end_service();
    std::exchange(sandbox.created, nullptr)(std::move(ports));
}

void SandboxTable::fail(const Entry& sandbox, Error error) {
    if (sandbox->failure || sandbox->state == State::removing) return;
    sandbox->control_watch.reset();
    sandbox->failure = std::move(error);
    log::warn("sandbox did not start",
              {{"sandbox", sandbox->id}, {"reason", sandbox->failure->message()}});
    (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
    watch_death(sandbox);
}

// What activate() puts together.

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
    const auto output = host_->slot_directory(sandbox.parts.slot) / kOutputFile;
    out.emplace_back(::open(output.c_str(), O_RDWR | O_CLOEXEC));
    if (!out.back()) return last_error("open " + output.string());
    if (host_->gvisor()) {
        const auto end = host_->slot_directory(sandbox.parts.slot) / kGvisorEndFile;
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
    for (const char* name : {"u", "w", "u2", "w2", kLayerMount}) {
        if (auto s = remove_tree(directory / name); !s) return s;
    }
    const auto image = directory / kLayerFile;
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

}  // namespace opensandbox::runtime::native
