#include "base/log.hpp"
#include "runtime/native/ground/layer/discarded_layers.hpp"
#include "runtime/native/records/sandbox_description.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <sys/syscall.h>

#include <unistd.h>

/// What a spawner finds of the sandboxes of earlier ones.
namespace opensandbox::runtime::native {

namespace {

/// The lifecycle knows this word: such a sandbox did not fail.
constexpr const char* kHostRestarted = "HOST_RESTARTED";

}  // namespace

Result<std::vector<SlotId>> SandboxTable::adopt() {
    auto entries = journal_.read_all();
    if (!entries) return entries.error();
    std::vector<SlotId> slots;
    for (const JournalEntry& entry : *entries) {
        adopt_one(entry);
        slots.push_back(entry.slot);
    }
    remove_gone_claims();
    return slots;
}

void SandboxTable::adopt_one(const JournalEntry& entry) {
    auto sandbox = std::make_shared<Sandbox>();
    sandbox->id = entry.id;
    sandbox->port = entry.port;
    sandbox->parts.slot = entry.slot;
    sandbox->parts.pid = entry.pid;
    sandbox->parts.address6 = entry.address6;
    sandbox->start_time = entry.start_time;
    sandbox->exit = entry.exit;
    sandbox->digest = entry.digest;
    std::string network;
    std::string hostname;
    if (auto known = read_description(host_->slot_directory(entry.slot))) {
        sandbox->snapshot_layers = std::move(known->plan.snapshot_layers);
        sandbox->claims = std::move(known->plan.claims);
        sandbox->own_claims = std::move(known->plan.own_claims);
        sandbox->published = std::move(known->published);
        network = std::move(known->plan.network.shared);
        hostname = std::move(known->plan.network.hostname);
    }
    sandbox->state = State::exited;
    sandboxes_.emplace(entry.id, sandbox);
    // Its processes went with the kernel, whatever now has their numbers.
    if (!entry.boot.empty() && entry.boot != boot_) return end_with_host(*sandbox);
    if (entry.exit) return;
    // Only this order is safe: the descriptor first, then whether it is still the same process.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, entry.pid, 0)));
    if (pidfd && process_start_time(entry.pid) == entry.start_time) {
        sandbox->parts.pidfd = std::move(pidfd);
        sandbox->state = State::running;
        // One that was stopped for a snapshot that will never be runs on.
        sandbox->paused = entry.paused && freezer(*sandbox).asked();
        if (!sandbox->paused) (void)freezer(*sandbox).thaw();
        watch_death(sandbox);
        // The rules were made anew.
        auto joined = join_network(*sandbox, network, hostname);
        if (!joined) {
            log::error("sandbox is without its network",
                       {{"sandbox", entry.id}, {"reason", joined.error().message()}});
        }
        return;
    }
    sandbox->exit = explain(*sandbox, {-1, 0});
    (void)journal_.write(journal_entry(*sandbox));
}

void SandboxTable::end_with_host(Sandbox& sandbox) {
    if (!sandbox.exit) {
        Exit& exit = sandbox.exit.emplace();
        exit.code = -1;
        exit.reason = kHostRestarted;
        exit.message = "The host was restarted, and the sandbox ended with it.";
        exit.at = now();
    }
    (void)journal_.write(journal_entry(sandbox));
    const auto directory = host_->slot_directory(sandbox.parts.slot);
    const DiscardedLayers discarded(host_->options.sandboxes_directory());
    if (auto s = discarded.put_aside(directory); !s) {
        log::warn("the writable layer of a sandbox stays until it is deleted",
                  {{"sandbox", sandbox.id}, {"reason", s.error().message()}});
    }
}

bool SandboxTable::at_rest() const {
    for (const auto& [id, sandbox] : sandboxes_) {
        const bool settled = sandbox->state == State::running || sandbox->state == State::exited;
        const bool leaving = sandbox->failure || !sandbox->destroyed.empty();
        if (!settled || leaving || sandbox->freezing || sandbox->copying) return false;
    }
    return true;
}

}  // namespace opensandbox::runtime::native
