#include "base/log.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/records/sandbox_description.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <utility>

/// Sandboxes that stand still: pauses and snapshots.
namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// A process that the kernel has not stopped by then is stuck in it.
constexpr auto kFreezeTimeout = 10s;

Error busy() {
    return {ErrorCode::conflict, "the sandbox is being paused, or a snapshot of it is being made"};
}

}  // namespace

Freezer SandboxTable::freezer(const Sandbox& sandbox) const {
    return {host_->cgroups, slot_name(sandbox.parts.slot), sandbox.parts.pid};
}

Result<SandboxTable::Entry> SandboxTable::find_running(const std::string& id) const {
    auto found = find(id);
    if (!found) return found;
    if ((*found)->state != State::running || !(*found)->destroyed.empty()) {
        return Error(ErrorCode::conflict, "NATIVE::SANDBOX_NOT_RUNNING",
                     "Sandbox " + id + " is not running.");
    }
    return found;
}

void SandboxTable::freeze(const Entry& sandbox, Done done) {
    sandbox->freezing = true;
    await_frozen(sandbox, EventLoop::Clock::now() + kFreezeTimeout,
                 [sandbox, done = std::move(done)](Status status) {
                     sandbox->freezing = false;
                     done(std::move(status));
                 });
}

void SandboxTable::await_frozen(const Entry& sandbox, EventLoop::Clock::time_point deadline,
                                Done done) {
    if (sandbox->state != State::running || !sandbox->destroyed.empty()) {
        return done(Error(ErrorCode::conflict, "the sandbox ended meanwhile"));
    }
    const Freezer freezer = this->freezer(*sandbox);
    Status status = freezer.freeze();
    if (status && freezer.frozen()) return done({});
    if (status && EventLoop::Clock::now() > deadline) {
        status = Error(ErrorCode::timeout, "a process of the sandbox does not stop");
    }
    if (!status) {
        (void)freezer.thaw();
        return done(std::move(status));
    }
    loop_->run_after(1ms, [this, sandbox, deadline, done = std::move(done)] {
        await_frozen(sandbox, deadline, done);
    });
}

void SandboxTable::pause(const std::string& id, Done done) {
    auto found = find_running(id);
    if (!found) return done(found.error());
    const Entry sandbox = *found;
    if (sandbox->paused) return done({});
    if (sandbox->freezing) return done(busy());
    // It stands still for a snapshot already.
    if (sandbox->copying) return settle_pause(sandbox, {}, done);
    freeze(sandbox, [this, sandbox, done = std::move(done)](Status status) {
        settle_pause(sandbox, std::move(status), done);
    });
}

void SandboxTable::settle_pause(const Entry& sandbox, Status frozen, const Done& done) {
    if (!frozen) return done(std::move(frozen));
    sandbox->paused = true;
    auto written = journal_.write(journal_entry(*sandbox));
    if (!written) {
        sandbox->paused = false;
        if (!sandbox->copying) (void)freezer(*sandbox).thaw();
    }
    done(std::move(written));
}

void SandboxTable::resume(const std::string& id, Done done) {
    auto found = find_running(id);
    if (!found) return done(found.error());
    const Entry sandbox = *found;
    if (!sandbox->paused) return done(sandbox->freezing ? Status(busy()) : Status());
    if (!sandbox->copying) {
        if (auto s = freezer(*sandbox).thaw(); !s) return done(s);
    }
    sandbox->paused = false;
    // A new spawner believes the kernel when this fails.
    if (auto s = journal_.write(journal_entry(*sandbox)); !s) {
        log::warn("resumption is not journalled",
                  {{"sandbox", id}, {"reason", s.error().message()}});
    }
    if (sandbox->copying) return sandbox->copying->resumed.push_back(std::move(done));
    done({});
}

void SandboxTable::snapshot(const std::string& id, const std::string& snapshot, bool for_copies,
                            Done done) {
    auto found = find_running(id);
    if (!found) return done(found.error());
    const Entry sandbox = *found;
    if (sandbox->freezing || sandbox->copying) return done(busy());
    if (snapshots_->exists(snapshot)) {
        return done(Error(ErrorCode::conflict, "snapshot " + snapshot + " exists already"));
    }
    sandbox->copying.emplace(snapshot, for_copies, std::move(done));
    if (sandbox->paused) return copy_layers(sandbox);
    freeze(sandbox, [this, sandbox](Status status) {
        if (!status) return end_snapshot(sandbox, std::move(status));
        copy_layers(sandbox);
    });
}

void SandboxTable::copy_layers(const Entry& sandbox) {
    const auto directory = host_->slot_directory(sandbox->parts.slot);
    auto description = read_description(directory);
    if (!description) return end_snapshot(sandbox, description.error());
    SnapshotRecord record;
    record.id = sandbox->copying->id;
    record.created_at = now();
    record.boot = boot_id();
    record.layers.push_back(record.id);
    record.layers.insert(record.layers.end(), description->plan.snapshot_layers.begin(),
                         description->plan.snapshot_layers.end());
    record.image = description->plan.image;
    record.egress = egress_->terms(sandbox->id);
    if (sandbox->copying->for_copies) {
        description->egress = std::exchange(record.egress, {});
        record.source = std::move(*description);
    }
    if (record.layers.size() + record.image.layers.size() > kMaxLowers) {
        return end_snapshot(
            sandbox, Error(ErrorCode::conflict,
                           "the sandbox stands on " + std::to_string(record.layers.size() - 1) +
                               " snapshots, one on the other: no more than " +
                               std::to_string(kMaxLowers) + " layers can be stacked"));
    }
    if (sandbox->copying->unwanted) {
        return end_snapshot(sandbox, Error(ErrorCode::cancelled, "nobody wants it any more"));
    }
    sandbox->copying->job = snapshots_->make(
        record, layer_directory(directory),
        [this, sandbox](Status status) { end_snapshot(sandbox, std::move(status)); });
}

void SandboxTable::end_snapshot(const Entry& sandbox, Status status) {
    Copying copying = std::move(*sandbox->copying);
    sandbox->copying.reset();
    if (sandbox->state == State::running && !sandbox->paused) {
        if (auto s = freezer(*sandbox).thaw(); !s) {
            log::error("sandbox stands still after a snapshot",
                       {{"sandbox", sandbox->id}, {"reason", s.error().message()}});
        }
    }
    if (status && copying.unwanted) {
        (void)snapshots_->remove(copying.id);
        status = Error(ErrorCode::cancelled, "the sandbox was destroyed meanwhile");
    }
    for (const Done& resumed : copying.resumed)
        resumed({});
    copying.done(std::move(status));
}

void SandboxTable::give_up_snapshot(Sandbox& sandbox) {
    if (!sandbox.copying) return;
    sandbox.copying->unwanted = true;
    if (sandbox.copying->job != 0) snapshots_->cancel(sandbox.copying->job);
}

void SandboxTable::cancel_snapshot(const std::string& snapshot) {
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox->copying && sandbox->copying->id == snapshot) give_up_snapshot(*sandbox);
    }
}

std::set<std::string> SandboxTable::snapshot_layers() const {
    std::set<std::string> names;
    for (const auto& [id, sandbox] : sandboxes_)
        names.insert(sandbox->snapshot_layers.begin(), sandbox->snapshot_layers.end());
    return names;
}

}  // namespace opensandbox::runtime::native
