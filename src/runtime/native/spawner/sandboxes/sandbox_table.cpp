#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/spawner/sandboxes/exit_reason.hpp"

#include <sys/epoll.h>

#include <csignal>
#include <unistd.h>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// A slot that has not answered by then is given up.
constexpr auto start_timeout = 30s;
/// A process that has not died of SIGKILL by then is reported; it goes when the kernel lets it.
constexpr auto kill_timeout = 10s;

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
    const auto allowed = start_timeout + std::chrono::seconds(request.start_seconds);
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

JournalEntry SandboxTable::journal_entry(const Sandbox& sandbox) const {
    JournalEntry entry;
    entry.id = sandbox.id;
    entry.slot = sandbox.parts.slot;
    entry.pid = sandbox.parts.pid;
    entry.start_time = sandbox.start_time;
    entry.port = sandbox.port;
    entry.paused = sandbox.paused;
    entry.boot = boot_;
    entry.digest = sandbox.digest;
    entry.address6 = sandbox.parts.address6;
    entry.exit = sandbox.exit;
    return entry;
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

void SandboxTable::watch_death(const Entry& sandbox) {
    if (sandbox->death_watch) return;
    sandbox->death_watch = loop_->watch(sandbox->parts.pidfd.get(), EPOLLIN,
                                        [this, sandbox](std::uint32_t) { on_death(sandbox); });
}

void SandboxTable::on_death(const Entry& sandbox) {
    sandbox->death_watch.reset();
    const auto end = process_end(sandbox->parts.pidfd.get());
    // An adopted process is init's child: its end can be read only once init has reaped it, and
    // some reap once a second.
    const bool wanted = !sandbox->failure && sandbox->destroyed.empty();
    if (!end && wanted && ++sandbox->death_checks < 300) {
        loop_->run_after(sandbox->death_checks < 200 ? 5ms : 50ms,
                         [this, weak = std::weak_ptr(sandbox)] {
                             if (const auto held = weak.lock()) on_death(held);
                         });
        return;
    }
    pool_->note_activity();
    if (sandbox->state == State::starting && !sandbox->failure) {
        sandbox->failure = Error(ErrorCode::internal, "the sandbox ended before it was ready");
    }
    sandbox->control_watch.reset();
    drop_control(*sandbox);
    if (sandbox->failure || !sandbox->destroyed.empty()) return remove(sandbox);
    sandbox->exit = explain(*sandbox, end.value_or(ProcessEnd{-1, 0}));
    sandbox->state = State::exited;
    log::info("sandbox ended", {{"sandbox", sandbox->id},
                                {"code", sandbox->exit->code},
                                {"signal", sandbox->exit->signal},
                                {"reason", sandbox->exit->reason}});
    if (auto s = journal_.write(journal_entry(*sandbox)); !s) {
        log::error("exit is not journalled",
                   {{"sandbox", sandbox->id}, {"reason", s.error().message()}});
    }
    networks_->leave(sandbox->parts.slot);
    egress_->release(sandbox->id);
    if (exited_) exited_(sandbox->id, *sandbox->exit);
}

Exit SandboxTable::explain(const Sandbox& sandbox, ProcessEnd end) const {
    const SlotId slot = sandbox.parts.slot;
    const Usage usage = SlotCgroup::adopt(host_->cgroups, slot_name(slot)).usage();
    const auto description = read_description(host_->slot_directory(slot));
    Exit exit = explain_exit(end, usage, description ? description->plan.limits : ResourceLimits());
    explain_gvisor(exit, read_file_or_empty(host_->slot_directory(slot) / gvisor_end_file));
    exit.at = now();
    return exit;
}
void SandboxTable::destroy(const std::string& id, Done done) {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) return done({});
    const Entry sandbox = found->second;
    sandbox->destroyed.push_back(std::move(done));
    if (sandbox->state == State::exited) return remove(sandbox);
    if (sandbox->state != State::starting && sandbox->state != State::running) return;
    if (sandbox->state == State::starting) {
        return fail(sandbox, Error(ErrorCode::cancelled, "destroyed while it started"));
    }
    give_up_snapshot(*sandbox);
    (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
    // What stands still in cgroup v1 dies only when it may move.
    if (sandbox->paused || sandbox->freezing || sandbox->copying) {
        (void)freezer(*sandbox).thaw();
    }
    loop_->run_after(kill_timeout, [weak = std::weak_ptr(sandbox)] {
        const auto held = weak.lock();
        if (!held || held->state != State::running) return;
        for (Done& waiting : std::exchange(held->destroyed, {})) {
            waiting(Error(ErrorCode::timeout, "the sandbox's processes do not end"));
        }
        held->destroyed.emplace_back([](const Status&) {});
    });
}

void SandboxTable::remove(const Entry& sandbox) {
    if (sandbox->state == State::removing) return;
    sandbox->state = State::removing;
    sandbox->control_watch.reset();
    sandbox->death_watch.reset();
    const SlotId slot = sandbox->parts.slot;
    networks_->leave(slot);
    egress_->release(sandbox->id);
    drop_control(*sandbox);
    // Mounts and namespaces go with the last descriptor.
    sandbox->parts = {};
    sandbox->scaffold.clear();
    remove_claims(*sandbox);
    pool_->remove(slot, [this, sandbox](const Status& status) { forget(sandbox, status); });
}

void SandboxTable::forget(const Entry& sandbox, const Status& status) {
    journal_.remove(sandbox->id);
    sandboxes_.erase(sandbox->id);
    if (!sandbox->snapshot_layers.empty()) snapshots_->sweep();
    if (sandbox->failure) answer(*sandbox, *sandbox->failure);
    for (Done& done : std::exchange(sandbox->destroyed, {}))
        done(status);
}

std::vector<Observed> SandboxTable::list() const {
    std::vector<Observed> out;
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox->state == State::waiting || sandbox->state == State::removing) continue;
        if (sandbox->failure) continue;
        Observed& item = out.emplace_back();
        item.id = id;
        item.endpoints.agent = {host_->options.publish_host, sandbox->port};
        item.endpoints.published = sandbox->published;
        if (egress_->guards(id)) {
            item.endpoints.egress_port = host_->egress_sockets.api_port;
            item.endpoints.egress_token = egress_->token(id);
        }
        item.paused = sandbox->paused && !sandbox->exit;
        item.exit = sandbox->exit;
    }
    return out;
}

}  // namespace opensandbox::runtime::native
