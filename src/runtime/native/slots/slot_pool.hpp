#pragma once

#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/slots/background_job.hpp"
#include "runtime/native/slots/broker_maker.hpp"
#include "runtime/native/slots/pool_demand.hpp"
#include "runtime/native/slots/slot_maker.hpp"
#include "runtime/native/slots/worker.hpp"

#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <vector>

namespace opensandbox::runtime::native {

/// Keeps as many blanks ready as demand asks for, hands them out, and removes what slots had. The
/// work is done by worker processes; removals never occupy all, so that what somebody waits for
/// goes on.
class SlotPool {
  public:
    /// Borrows both.
    SlotPool(EventLoop& loop, const Host& host) : loop_(&loop), host_(&host), jobs_(loop, host) {}

    /// Starts the workers. `taken` are slots that live on from an earlier spawner.
    Status start(const std::vector<SlotId>& taken, PoolSettings settings);
    /// How many blanks to keep ready from now on.
    void resize(PoolSettings settings);

    using Taker = std::function<void(Result<SlotParts>)>;
    /// Gives a blank that has aged enough for its network to work, at once when there is one.
    void take(Taker taker);
    /// The same for work that nobody waits for: after everybody else, and not counted as demand.
    void take_ahead(Taker taker);
    /// So many of the slots asked for are kept elsewhere, or are about to be.
    void lend(std::size_t count);
    /// How many may be: some blanks stay for what nobody foresaw.
    [[nodiscard]] std::uint32_t lendable() const;
    /// One that was lent is taken now.
    void take_lent();
    /// How long a surplus of slots waits before it goes.
    [[nodiscard]] std::uint32_t idle_seconds() const { return demand_.idle_seconds(); }
    /// Which kind of image is asked for: blanks are made to suit.
    void note_image(bool of_host);
    /// Nobody waits for a sandbox, and nobody did just now.
    [[nodiscard]] bool is_quiet(EventLoop::Clock::duration time) const;
    /// Lets the number of blanks follow demand; to be called about twice a second.
    void tend();
    /// Starts the broker of a sandbox (broker_process.hpp). Whoever removes the slot meanwhile
    /// waits for that.
    struct BrokerOrder {
        SlotId slot;
        UniqueFd control;  ///< the spawner's end of the agent's control socket
        UniqueFd agent;    ///< pidfd of the agent
        pid_t pid = 0;     ///< of the agent
        std::function<void(Result<BrokerParts>)> done;
    };
    void start_broker(BrokerOrder order);
    /// Removes what the slot had; its process must be dead. Then the slot's address is free again.
    void remove(SlotId slot, std::function<void(Status)> done);
    /// Closes descriptors of mounts in a process that has time: the kernel takes mounts apart when
    /// the last one goes.
    void discard(std::vector<UniqueFd> descriptors);
    /// Postpones refilling a little: something happens that it would slow down.
    void note_activity() { last_activity_ = EventLoop::Clock::now(); }
    /// Postpones refilling from one call to the other: somebody waits for a sandbox.
    void begin_service() { ++serving_; }
    void end_service() {
        --serving_;
        note_activity();
    }
    /// Ends all blanks and removes what they had; nothing is made any more.
    void drain();
    /// No job runs or waits.
    [[nodiscard]] bool idle() const;
    /// Files of slots that are gone are still there.
    [[nodiscard]] bool removes_files() const { return removing_files_; }

    /// Fills in what is known here.
    void tell(Figures& figures) const;

  private:
    struct Blank {
        SlotParts parts;
        EventLoop::Clock::time_point ready_at;
        EventLoop::Watch death;
    };
    struct Removal {
        SlotId slot;
        std::function<void(Status)> done;
    };
    struct WorkerState {
        Worker worker;
        EventLoop::Watch watch;
        std::optional<SlotId> making;
        std::optional<Removal> removing;
        std::optional<BrokerOrder> brokering;
        [[nodiscard]] bool busy() const { return making || removing || brokering; }
    };

    Status start_worker_at(std::size_t at);
    Status start_closer();
    void schedule();
    bool start_job(WorkerState& state);
    [[nodiscard]] std::size_t coming() const;
    [[nodiscard]] std::size_t waiting() const { return blanks_.size() + lent_; }
    [[nodiscard]] bool refill_due() const;
    [[nodiscard]] bool wants_usr(EventLoop::Clock::time_point now) const;
    [[nodiscard]] bool refill_allowed(EventLoop::Clock::time_point now) const;
    void refill_later(EventLoop::Clock::time_point now);
    void note_level();
    void retire_surplus();
    void serve_takers();
    void fail_takers(const Error& error);
    void on_worker(std::size_t at);
    void on_worker_death(std::size_t at);
    void on_made(WorkerState& state, SlotParts parts);
    void on_failed(WorkerState& state, const JobFailed& failed);
    bool start_next_broker(WorkerState& state);
    void finish_broker(WorkerState& state, Result<BrokerParts> parts);
    [[nodiscard]] std::deque<Removal>::iterator next_removal();
    void finish_removal(WorkerState& state, const Status& status);
    void on_blank_death(std::uint32_t serial);
    void remove_files_soon();
    void remove_files_after(EventLoop::Clock::duration delay);
    void on_files_removed(std::size_t count, const Status& status);
    void wake_after(EventLoop::Clock::duration delay);
    Result<SlotId> allocate();
    void give_back(SlotId slot);

    EventLoop* loop_;
    const Host* host_;
    PoolDemand demand_;
    bool draining_ = false;
    bool wake_planned_ = false;
    std::vector<WorkerState> workers_;
    Worker closer_;              ///< takes no job but descriptors
    std::list<Blank> blanks_;    ///< oldest first
    std::list<Blank> retiring_;  ///< no longer needed, dying
    std::deque<Taker> takers_;
    std::deque<Taker> ahead_;
    std::deque<Removal> removals_;
    std::deque<BrokerOrder> brokers_;         ///< to be started
    BackgroundJobs jobs_;                     ///< removing files
    bool removing_files_ = false;             ///< or about to
    std::size_t discarded_ = 0;               ///< slots whose files wait or are being removed
    std::deque<std::uint32_t> free_indexes_;  ///< longest unused first
    std::set<std::uint32_t> serials_;
    std::uint32_t last_serial_ = 0;
    std::uint32_t serving_ = 0;
    std::size_t lent_ = 0;
    bool asked_for_images_ = false;
    EventLoop::Clock::time_point host_image_at_{};
    std::uint32_t failures_ = 0;  ///< in a row
    EventLoop::Clock::time_point last_activity_{};
    EventLoop::Clock::time_point retry_at_{};
    /// Since when there are fewer blanks than there should be.
    std::optional<EventLoop::Clock::time_point> short_since_;
    std::uint64_t hits_ = 0;
    std::uint64_t misses_ = 0;
    std::uint64_t refills_ = 0;
    EventLoop::Clock::duration refill_time_{};
};

}  // namespace opensandbox::runtime::native
