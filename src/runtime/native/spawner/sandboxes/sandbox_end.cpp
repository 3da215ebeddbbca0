#include "base/log.hpp"
#include "runtime/native/spawner/sandboxes/exit_reason.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>
#include <utility>

/// How a sandbox ends, by itself or on request, and with it the volumes that are its own.
namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// A process that has not died of SIGKILL by then is reported; it goes when the kernel lets it.
constexpr auto kIllTimeout = 10s;

}  // namespace

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
    explain_gvisor(exit, read_file_or_empty(host_->slot_directory(slot) / kGvisorEndFile));
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
    loop_->run_after(kIllTimeout, [weak = std::weak_ptr(sandbox)] {
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

/// A volume that another sandbox uses as well stays.
void SandboxTable::remove_claims(Sandbox& sandbox) {
    bool discarded = false;
    for (const std::string& name : std::exchange(sandbox.own_claims, {})) {
        const bool shared = std::ranges::any_of(sandboxes_, [&](const auto& item) {
            const Sandbox& other = *item.second;
            return other.id != sandbox.id && std::ranges::count(other.claims, name) > 0;
        });
        if (shared) {
            log::info("a volume stays for another sandbox", {{"volume", name}});
            continue;
        }
        claims_.discard(name);
        discarded = true;
    }
    if (discarded) remove_gone_claims();
}

void SandboxTable::remove_gone_claims() {
    if (!claims_.has_gone()) return;
    BackgroundJobs::Job job;
    job.work = [claims = claims_] { return claims.remove_gone(); };
    job.done = [](const Status& status) {
        if (!status) {
            log::error("remains of a volume stay", {{"reason", status.error().message()}});
        }
    };
    jobs_.start(std::move(job));
}

}  // namespace opensandbox::runtime::native
