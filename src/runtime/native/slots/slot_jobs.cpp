#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/discarded_layers.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/slots/slot_pool.hpp"

#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <utility>

/// What the pool has its workers do: make slots and brokers, and remove what slots had.
namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// So many slots' files may wait for their removal; those of the next go before it is told.
constexpr std::size_t kMostDiscarded = 64;
/// Removing files begins a little after, once for all that went together.
constexpr auto kDiscardDelay = 100ms;
constexpr auto kDiscardRetry = 60s;

}  // namespace

Status SlotPool::start_closer() {
    closer_ = {};
    auto worker = start_worker(*host_);
    if (!worker) return worker.error();
    closer_ = std::move(*worker);
    // Nobody waits for it.
    return check(::fcntl(closer_.socket.get(), F_SETFL, O_NONBLOCK), "fcntl");
}

Status SlotPool::start_worker_at(std::size_t at) {
    auto worker = start_worker(*host_);
    if (!worker) return worker.error();
    workers_[at] = {};
    workers_[at].worker = std::move(*worker);
    workers_[at].watch = loop_->watch(workers_[at].worker.socket.get(), EPOLLIN,
                                      [this, at](std::uint32_t) { on_worker(at); });
    return {};
}

void SlotPool::start_broker(BrokerOrder order) {
    brokers_.push_back(std::move(order));
    schedule();
}

void SlotPool::schedule() {
    for (WorkerState& state : workers_) {
        if (!state.busy() && state.worker.socket) start_job(state);
    }
}

bool SlotPool::start_job(WorkerState& state) {
    const auto now = EventLoop::Clock::now();
    const auto send = [&](const Message& job) {
        if (auto s = send_message(state.worker.socket.get(), encode(job)); !s) {
            log::error("worker does not take a job", {{"reason", s.error().message()}});
        }
        return true;
    };
    if (!brokers_.empty()) return start_next_broker(state);
    if (refill_due() && refill_allowed(now)) {
        auto slot = allocate();
        if (slot) {
            state.making = *slot;
            return send(MakeSlot{*slot, wants_usr(now)});
        }
        fail_takers(slot.error());
    }
    const auto removing = static_cast<std::size_t>(std::ranges::count_if(
        workers_, [](const WorkerState& other) { return other.removing.has_value(); }));
    const auto removal = next_removal();
    if (removal != removals_.end() && removing + 1 < workers_.size()) {
        state.removing = std::move(*removal);
        removals_.erase(removal);
        return send(RemoveSlot{state.removing->slot, discarded_ >= kMostDiscarded});
    }
    if (refill_due()) refill_later(now);
    return false;
}

bool SlotPool::start_next_broker(WorkerState& state) {
    BrokerOrder order = std::move(brokers_.front());
    brokers_.pop_front();
    const auto sent =
        send_message(state.worker.socket.get(), encode(MakeBroker{order.slot, order.pid}),
                     std::array{order.control.get(), order.agent.get()});
    if (sent) {
        state.brokering = std::move(order);
    } else {
        order.done(sent.error());
    }
    return true;
}

void SlotPool::finish_broker(WorkerState& state, Result<BrokerParts> parts) {
    BrokerOrder order = std::move(*state.brokering);
    state.brokering.reset();
    order.done(std::move(parts));
}

/// A slot in which a broker is being started is not removed under it.
std::deque<SlotPool::Removal>::iterator SlotPool::next_removal() {
    return std::ranges::find_if(removals_, [&](const Removal& removal) {
        return std::ranges::none_of(workers_, [&](const WorkerState& state) {
            return state.brokering && state.brokering->slot == removal.slot;
        });
    });
}

void SlotPool::on_worker(std::size_t at) {
    WorkerState& state = workers_[at];
    auto received = receive_message(state.worker.socket.get());
    if (!received || received->closed) return on_worker_death(at);
    auto message = decode(received->bytes);
    if (!message) return on_worker_death(at);
    if (auto* broker = std::get_if<BrokerMade>(&*message)) {
        if (received->descriptors.size() != 1 || !state.brokering) return on_worker_death(at);
        BrokerParts parts;
        parts.pid = broker->pid;
        parts.pidfd = std::move(received->descriptors[0]);
        finish_broker(state, std::move(parts));
        return schedule();
    }
    if (auto* made = std::get_if<SlotMade>(&*message)) {
        const std::size_t count = received->descriptors.size();
        if ((count != 4 && count != 5) || !state.making) return on_worker_death(at);
        SlotParts parts;
        parts.slot = made->slot;
        parts.pid = made->pid;
        parts.control = std::move(received->descriptors[0]);
        parts.pidfd = std::move(received->descriptors[1]);
        parts.user_namespace = std::move(received->descriptors[2]);
        parts.base = std::move(received->descriptors[3]);
        if (count == 5) parts.usr = std::move(received->descriptors[4]);
        on_made(state, std::move(parts));
    } else if (auto* failed = std::get_if<JobFailed>(&*message)) {
        if (state.brokering)
            finish_broker(state, failed->error);
        else if (state.removing)
            finish_removal(state, failed->error);
        else
            on_failed(state, *failed);
    } else if (std::holds_alternative<SlotRemoved>(*message)) {
        finish_removal(state, {});
    }
    serve_takers();
    note_level();
    schedule();
}

void SlotPool::on_made(WorkerState& state, SlotParts parts) {
    state.making.reset();
    failures_ = 0;
    if (draining_) {
        (void)signal_process(parts.pidfd.get(), SIGKILL);
        ::waitpid(parts.pid, nullptr, __WALL);
        remove(parts.slot, [](const Status&) {});
        return;
    }
    Blank& blank = blanks_.emplace_back();
    blank.ready_at = EventLoop::Clock::now();
    blank.death =
        loop_->watch(parts.pidfd.get(), EPOLLIN,
                     [this, serial = parts.slot.serial](std::uint32_t) { on_blank_death(serial); });
    blank.parts = std::move(parts);
}

void SlotPool::on_failed(WorkerState& state, const JobFailed& failed) {
    if (!state.making) return;
    const SlotId slot = *state.making;
    const Error& error = failed.error;
    state.making.reset();
    // What the worker cloned is our child; it was killed.
    if (failed.pid > 0) ::waitpid(failed.pid, nullptr, __WALL);
    give_back(slot);
    ++failures_;
    // The address of another server on this host: the next may be free.
    if (error.code() == ErrorCode::conflict && failures_ < 100) return;
    log::error("cannot make a slot",
               {{"slot", slot_name(slot)}, {"reason", error.message()}, {"failures", failures_}});
    // Whoever waits learns the reason; refilling waits longer each time.
    retry_at_ = EventLoop::Clock::now() +
                std::min<EventLoop::Clock::duration>(100ms * (1U << std::min(failures_, 8U)), 10s);
    fail_takers(error.within("slot"));
}

void SlotPool::finish_removal(WorkerState& state, const Status& status) {
    if (!state.removing) return;
    Removal removal = std::move(*state.removing);
    state.removing.reset();
    // An address with remains is not used again in this life.
    if (status) give_back(removal.slot);
    ++discarded_;
    remove_files_soon();
    removal.done(status);
}

void SlotPool::remove_files_soon() {
    remove_files_after(kDiscardDelay);
}

/// One process at a time, which may be ended at any moment: the next goes on where it was.
void SlotPool::remove_files_after(EventLoop::Clock::duration delay) {
    if (removing_files_) return;
    removing_files_ = true;
    loop_->run_after(delay, [this] {
        const DiscardedLayers discarded(host_->options.sandboxes_directory());
        const std::size_t count = std::exchange(discarded_, 0);
        if (!discarded.any()) {
            removing_files_ = false;
            return;
        }
        discarded_ = count;
        BackgroundJobs::Job job;
        job.work = [discarded] { return discarded.remove(); };
        job.done = [this, count](const Status& status) { on_files_removed(count, status); };
        jobs_.start(std::move(job));
    });
}

void SlotPool::on_files_removed(std::size_t count, const Status& status) {
    removing_files_ = false;
    discarded_ -= std::min(discarded_, count);
    if (!status) {
        log::error("files of ended sandboxes stay", {{"reason", status.error().message()}});
        return remove_files_after(kDiscardRetry);
    }
    const DiscardedLayers discarded(host_->options.sandboxes_directory());
    if (discarded.any()) remove_files_soon();
}

void SlotPool::on_worker_death(std::size_t at) {
    WorkerState& state = workers_[at];
    log::error("a worker died; another takes its place", {{"pid", state.worker.pid}});
    state.watch.reset();
    ::kill(state.worker.pid, SIGKILL);
    ::waitpid(state.worker.pid, nullptr, 0);
    // Half a slot is removed like a whole one.
    if (state.making) removals_.push_back({*state.making, [](const Status&) {}});
    if (state.removing) removals_.push_front(std::move(*state.removing));
    if (state.brokering) {
        finish_broker(state, Error(ErrorCode::internal, "a worker of the server died"));
    }
    state = {};
    if (auto status = start_worker_at(at); !status) {
        log::error("cannot start a worker", {{"reason", status.error().message()}});
        loop_->run_after(1s, [this, at] {
            if (!workers_[at].worker.socket && start_worker_at(at)) schedule();
        });
    }
    schedule();
}

}  // namespace opensandbox::runtime::native
