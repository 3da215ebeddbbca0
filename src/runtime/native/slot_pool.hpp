#pragma once

#include "runtime/native/event_loop.hpp"
#include "runtime/native/host.hpp"
#include "runtime/native/slot_maker.hpp"
#include "runtime/native/worker.hpp"

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <set>

namespace opensandbox::runtime::native {

/// Keeps blanks ready, hands them out, and removes what slots had. The work is done by two worker
/// processes; removals never occupy both, so that what somebody waits for goes on.
class SlotPool {
  public:
    /// Borrows both.
    SlotPool(EventLoop& loop, const Host& host) : loop_(&loop), host_(&host) {}

    /// Starts the workers. `taken` are slots that live on from an earlier spawner.
    Status start(const std::vector<SlotId>& taken, std::uint32_t size);
    /// How many blanks to keep ready from now on.
    void resize(std::uint32_t size);

    using Taker = std::function<void(Result<SlotParts>)>;
    /// Gives a blank that has aged enough for its network to work, at once when there is one.
    void take(Taker taker);
    /// Removes what the slot had; its process must be dead. Then the slot's address is free again.
    void remove(SlotId slot, std::function<void(Status)> done);
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

    [[nodiscard]] std::uint64_t ready() const { return blanks_.size(); }
    [[nodiscard]] std::uint64_t hits() const { return hits_; }
    [[nodiscard]] std::uint64_t misses() const { return misses_; }

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
        [[nodiscard]] bool busy() const { return making || removing; }
    };

    Status start_worker_at(std::size_t at);
    void schedule();
    bool start_job(WorkerState& state);
    [[nodiscard]] bool refill_due() const;
    void serve_takers();
    void on_worker(std::size_t at);
    void on_worker_death(std::size_t at);
    void on_made(WorkerState& state, SlotParts parts);
    void on_failed(WorkerState& state, const SlotFailed& failed);
    void finish_removal(WorkerState& state, const Status& status);
    void on_blank_death(std::uint32_t serial);
    void wake_after(EventLoop::Clock::duration delay);
    Result<SlotId> allocate();
    void give_back(SlotId slot);

    EventLoop* loop_;
    const Host* host_;
    std::uint32_t size_ = 0;
    bool draining_ = false;
    bool wake_planned_ = false;
    std::array<WorkerState, 2> workers_;
    std::list<Blank> blanks_;  ///< oldest first
    std::deque<Taker> takers_;
    std::deque<Removal> removals_;
    std::deque<std::uint32_t> free_indexes_;  ///< longest unused first
    std::set<std::uint32_t> serials_;
    std::uint32_t last_serial_ = 0;
    std::uint32_t serving_ = 0;
    std::uint32_t failures_ = 0;  ///< in a row
    EventLoop::Clock::time_point last_activity_{};
    EventLoop::Clock::time_point retry_at_{};
    std::uint64_t hits_ = 0;
    std::uint64_t misses_ = 0;
};

}  // namespace opensandbox::runtime::native
