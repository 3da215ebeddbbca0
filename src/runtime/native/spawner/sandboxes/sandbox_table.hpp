#pragma once

#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/records/claim_volumes.hpp"
#include "runtime/native/records/inspection_text.hpp"
#include "runtime/native/records/journal.hpp"
#include "runtime/native/records/sandbox_description.hpp"
#include "runtime/native/slots/slot_pool.hpp"
#include "runtime/native/slots/warm_slots.hpp"
#include "runtime/native/spawner/egress/egress_guard.hpp"
#include "runtime/native/spawner/sandboxes/freezer.hpp"
#include "runtime/native/spawner/sandboxes/networks.hpp"
#include "runtime/native/spawner/snapshots/snapshot_table.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// All sandboxes of a spawner, from the request to the last trace. A file each: sandbox_create.cpp,
/// sandbox_warm.cpp (creates that were made ahead), sandbox_adoption.cpp (after another spawner),
/// sandbox_freeze.cpp (pauses, snapshots), sandbox_broker.cpp, sandbox_views.cpp, sandbox_end.cpp.
class SandboxTable {
  public:
    /// Borrows all.
    SandboxTable(EventLoop& loop, const Host& host, SlotPool& pool, SnapshotTable& snapshots,
                 Networks& networks, EgressGuard& egress, Journal journal)
        : loop_(&loop),
          host_(&host),
          pool_(&pool),
          snapshots_(&snapshots),
          networks_(&networks),
          egress_(&egress),
          claims_(host.options.state_directory),
          jobs_(loop, host),
          journal_(std::move(journal)) {}

    /// Takes back what lives or died since an earlier spawner; returns the slots to keep.
    Result<std::vector<SlotId>> adopt();

    using Created = std::function<void(Result<HostPorts> ports)>;
    using Done = std::function<void(Status)>;
    using Exited = std::function<void(const std::string& id, const Exit&)>;

    /// Answers when a command works in it, or when after a failure nothing is left of it.
    void create(CreateRequest request, Created done);
    /// Answers when nothing is left.
    void destroy(const std::string& id, Done done);
    /// Answer when every process stands still, or runs on. A failure changes nothing.
    void pause(const std::string& id, Done done);
    void resume(const std::string& id, Done done);
    /// Stands still while its writable layer is copied. On failure nothing of the snapshot is left.
    /// `for_copies`: no snapshot, but what copies of the sandbox start from.
    void snapshot(const std::string& id, const std::string& snapshot, bool for_copies, Done done);
    /// Whoever wanted it is gone: undone, if it is still being made.
    void cancel_snapshot(const std::string& snapshot);
    /// Layers of snapshots below all sandboxes.
    [[nodiscard]] std::set<std::string> snapshot_layers() const;
    [[nodiscard]] std::vector<Observed> list() const;
    /// What its entrypoint wrote last, each line with its time; also when it ended.
    [[nodiscard]] Result<std::string> output(const std::string& id) const;
    /// For format_view().
    [[nodiscard]] Result<SandboxView> view(const std::string& id) const;
    /// A line "id serial" for each of at most `limit` sandboxes that run.
    [[nodiscard]] std::string slots(std::size_t limit) const;
    [[nodiscard]] std::size_t size() const { return sandboxes_.size(); }
    [[nodiscard]] bool runs(const std::string& id) const { return find_running(id).has_value(); }
    /// Keeps slots warm for these images, and for no others.
    void keep_warm(std::vector<CreateRequest> images);
    /// Ends all of them, also those being made.
    void drop_warm();
    /// Lets their number follow demand; to be called about twice a second.
    void tend_warm();
    [[nodiscard]] bool any_warm() const { return !warming_.empty(); }
    [[nodiscard]] const WarmSlots& warm() const { return warm_; }
    /// Nothing is being made, changed or removed: another spawner can take over.
    [[nodiscard]] bool at_rest() const;
    void on_exit(Exited listener) { exited_ = std::move(listener); }

  private:
    enum class State : std::uint8_t { waiting, starting, running, exited, removing };
    /// A snapshot that is being made.
    struct Copying {
        Copying(std::string name, bool copies, Done told)
            : id(std::move(name)), for_copies(copies), done(std::move(told)) {}
        std::string id;
        bool for_copies;
        std::uint64_t job = 0;  ///< 0 while the sandbox is being stopped
        bool unwanted = false;
        Done done;
        std::vector<Done> resumed;  ///< to be told when it runs on
    };
    struct Sandbox {
        std::string id;
        State state = State::waiting;
        CreateRequest request;  ///< until sent to the slot
        Created created;        ///< until answered
        std::vector<Done> destroyed;
        SlotParts parts;
        std::uint64_t start_time = 0;
        std::uint16_t port = 0;
        /// Ports of its own with those of the host that lead to them.
        std::vector<std::pair<std::uint16_t, std::uint16_t>> published;
        std::optional<Exit> exit;
        std::optional<Error> failure;  ///< of the creation, told once all is removed
        EventLoop::Watch control_watch;
        EventLoop::Watch death_watch;
        EventLoop::Watch broker_watch;  ///< until the agent asks for a broker
        EventLoop::Clock::duration broker_delay{};
        bool lends = false;  ///< users of the host can reach a volume that it writes to
        int death_checks = 0;
        bool paused = false;    ///< by request
        bool freezing = false;  ///< for a pause or a snapshot
        std::optional<Copying> copying;
        std::vector<std::string> snapshot_layers;
        std::string digest;                   ///< of its image
        std::vector<std::string> claims;      ///< named volumes that it uses
        std::vector<std::string> own_claims;  ///< those that go with it
        std::vector<UniqueFd> scaffold;       ///< of its mounts, dropped when nobody waits
        std::string warm_key;                 ///< of a slot that is being made warm
        EventLoop::Clock::time_point warm_by{};
        bool from_warm = false;  ///< its slot waited warm and has to be told what it is now
    };
    using Entry = std::shared_ptr<Sandbox>;
    /// A process that makes the isolated sessions of a sandbox. It is kept until it is reaped, by
    /// which the sandbox may be forgotten.
    struct Broker {
        BrokerParts parts;
        std::weak_ptr<Sandbox> sandbox;
        EventLoop::Watch death;
    };

    void begin(const Entry& sandbox, EventLoop::Clock::duration allowed);
    void guard_first(const Entry& sandbox);
    void on_guarded(const Entry& sandbox, Result<std::string> authority);
    Status activate(Sandbox& sandbox);
    Status write_down(Sandbox& sandbox, const SandboxDescription& description);
    void follow_start(const Entry& sandbox, EventLoop::Clock::duration allowed);
    bool begin_warm(const Entry& sandbox);
    void tend_warm_after(EventLoop::Clock::duration delay);
    [[nodiscard]] bool can_mount_ahead() const;
    Status hand_over(Sandbox& sandbox, const SlotParts& warm) const;
    Status settle_warm(Sandbox& sandbox);
    Status forget_request(Sandbox& sandbox);
    void start_warm(const WarmSlots::Order& order);
    void fail_warm(const std::string& key, const Error& error);
    void end_warm(SlotId slot);
    void on_warm(const Entry& sandbox);
    void on_warm_death(const Entry& sandbox);
    void end_late_warm(EventLoop::Clock::time_point now);
    Result<std::vector<UniqueFd>> build_parts(Sandbox& sandbox) const;
    Status restore_usr(Sandbox& sandbox) const;
    Status fit_layer(Sandbox& sandbox) const;
    Status set_limits(const Sandbox& sandbox) const;
    Status choose_network(const Sandbox& sandbox);
    Status join_network(const Sandbox& sandbox, const std::string& network,
                        const std::string& hostname);
    [[nodiscard]] JournalEntry journal_entry(const Sandbox& sandbox) const;
    void watch_death(const Entry& sandbox);
    void on_slot(const Entry& sandbox);
    void on_ready(const Entry& sandbox);
    void offer_broker(const Entry& sandbox);
    void start_broker(const Entry& sandbox);
    void refuse_broker(const Sandbox& sandbox, const std::string& reason);
    void on_broker(const std::weak_ptr<Sandbox>& sandbox, Result<BrokerParts> parts);
    void on_broker_death(pid_t pid);
    void start_broker_later(const std::weak_ptr<Sandbox>& sandbox);
    void drop_control(Sandbox& sandbox);
    void answer(Sandbox& sandbox, Result<HostPorts> ports);
    void fail(const Entry& sandbox, Error error);
    void on_death(const Entry& sandbox);
    [[nodiscard]] Exit explain(const Sandbox& sandbox, ProcessEnd end) const;
    void remove(const Entry& sandbox);
    void forget(const Entry& sandbox, const Status& status);
    void adopt_one(const JournalEntry& entry);
    void end_with_host(Sandbox& sandbox);
    [[nodiscard]] Freezer freezer(const Sandbox& sandbox) const;
    Result<Entry> find(const std::string& id) const;
    Result<Entry> find_running(const std::string& id) const;
    void remove_claims(Sandbox& sandbox);
    void remove_gone_claims();
    void freeze(const Entry& sandbox, Done done);
    void await_frozen(const Entry& sandbox, EventLoop::Clock::time_point deadline, Done done);
    void settle_pause(const Entry& sandbox, Status frozen, const Done& done);
    void copy_layers(const Entry& sandbox);
    void end_snapshot(const Entry& sandbox, Status status);
    void give_up_snapshot(Sandbox& sandbox);

    EventLoop* loop_;
    const Host* host_;
    SlotPool* pool_;
    SnapshotTable* snapshots_;
    Networks* networks_;
    EgressGuard* egress_;
    ClaimVolumes claims_;
    BackgroundJobs jobs_;
    Journal journal_;
    std::string boot_ = boot_id();
    Exited exited_;
    std::map<std::string, Entry> sandboxes_;
    std::map<pid_t, Broker> brokers_;
    WarmSlots warm_;
    std::map<std::uint32_t, Entry> warming_;  ///< by serial: warm slots, ready or being made
    bool tending_soon_ = false;
};

}  // namespace opensandbox::runtime::native
