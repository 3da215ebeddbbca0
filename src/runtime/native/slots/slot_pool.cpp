#include "runtime/native/slots/slot_pool.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/discarded_layers.hpp"
#include "runtime/native/ground/message_socket.hpp"

#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <span>
#include <utility>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// A first connection through a link younger than this may stall for a second: the kernel turns
/// its queue on a little after the link itself.
constexpr auto kMaturingTime = 20ms;
/// Making blanks slows down whoever is being served, so it waits for a pause of this length.
constexpr auto kQuietTime = 5ms;
/// But not longer than this: a steady stream of requests has no pauses. A burst is let through
/// first, if it has not ended by then either.
constexpr auto kRefillPatience = 100ms;
constexpr auto kBurstPatience = 1500ms;
/// Making a slot is waiting for the kernel more than computing.
constexpr std::size_t kWorkerCount = 8;
/// What a blank takes of the host, and which part of what is free all of them may have.
constexpr std::uint64_t kBlankBytes = 1 << 20;
constexpr std::uint64_t kMemoryPart = 4;
/// So long after the last sandbox of the host's image blanks are still made for it.
constexpr auto kHostImageMemory = 10min;
/// So many slots' files may wait for their removal; those of the next go before it is told.
constexpr std::size_t kMostDiscarded = 64;
/// Removing files begins a little after, once for all that went together.
constexpr auto kDiscardDelay = 100ms;
constexpr auto kDiscardRetry = 60s;
constexpr std::uint32_t kSerialMask = 0xff'ffff;

std::uint64_t available_memory() {
    const std::string text = read_file_or_empty("/proc/meminfo");
    constexpr std::string_view kName = "MemAvailable:";
    const auto at = text.find(kName);
    if (at == std::string::npos) return ~std::uint64_t{0};
    return std::strtoull(text.c_str() + at + kName.size(), nullptr, 10) * 1024;
}

}  // namespace

Status SlotPool::start(const std::vector<SlotId>& taken, PoolSettings settings) {
    std::set<std::uint32_t> used;
    for (const SlotId& slot : taken) {
        used.insert(slot.index);
        serials_.insert(slot.serial);
        last_serial_ = std::max(last_serial_, slot.serial);
    }
    // Servers that share a host and a range begin at different addresses.
    std::uint32_t seed = 0;
    std::from_chars(host_->tag.data(), host_->tag.data() + host_->tag.size(), seed, 16);
    const std::uint32_t capacity = host_->capacity();
    for (std::uint32_t i = 0; i < capacity; ++i) {
        const std::uint32_t index = (seed + i) % capacity;
        if (!used.contains(index)) free_indexes_.push_back(index);
    }
    workers_.resize(kWorkerCount);
    for (std::size_t at = 0; at < workers_.size(); ++at) {
        if (auto status = start_worker_at(at); !status) return status;
    }
    if (auto status = start_closer(); !status) return status;
    resize(settings);
    remove_files_after(kDiscardDelay);
    return {};
}

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

void SlotPool::resize(PoolSettings settings) {
    demand_.configure(settings);
    tend();
}

void SlotPool::tend() {
    demand_.tend(EventLoop::Clock::now());
    const std::uint64_t memory = available_memory() / kMemoryPart / kBlankBytes;
    // What is making comes out of the free addresses already.
    const std::uint64_t room = waiting() + std::min<std::uint64_t>(memory, free_indexes_.size());
    demand_.limit(static_cast<std::uint32_t>(std::min<std::uint64_t>(room, 1000)));
    retire_surplus();
    note_level();
    schedule();
}

void SlotPool::take(Taker taker) {
    note_activity();
    takers_.push_back(std::move(taker));
    demand_.on_take(last_activity_, waiting(), takers_.size());
    // Those that came before have a claim to the oldest blanks, also to one that still matures.
    if (blanks_.size() < takers_.size())
        ++misses_;
    else
        ++hits_;
    serve_takers();
    note_level();
    schedule();
}

void SlotPool::take_ahead(Taker taker) {
    ahead_.push_back(std::move(taker));
    serve_takers();
    schedule();
}

void SlotPool::lend(std::size_t count) {
    if (count == lent_) return;
    lent_ = count;
    note_level();
    schedule();
}

std::uint32_t SlotPool::lendable() const {
    constexpr std::uint32_t kMostKept = 8;
    const std::uint32_t target = draining_ ? 0 : demand_.target();
    return target - std::min(target, std::clamp(target / 4, 1U, kMostKept));
}

void SlotPool::take_lent() {
    note_activity();
    demand_.on_take(last_activity_, waiting(), takers_.size() + 1);
    ++hits_;
}

bool SlotPool::is_quiet(EventLoop::Clock::duration time) const {
    return serving_ == 0 && EventLoop::Clock::now() - last_activity_ >= time;
}

void SlotPool::serve_takers() {
    const auto now = EventLoop::Clock::now();
    while (!blanks_.empty()) {
        // Nobody's turn comes before that of whoever waits.
        auto& queue = takers_.empty() ? ahead_ : takers_;
        if (queue.empty()) return;
        const auto age = now - blanks_.front().ready_at;
        if (age < kMaturingTime) {
            wake_after(kMaturingTime - age);
            return;
        }
        SlotParts parts = std::move(blanks_.front().parts);
        blanks_.pop_front();
        Taker taker = std::move(queue.front());
        queue.pop_front();
        taker(std::move(parts));
    }
}

void SlotPool::fail_takers(const Error& error) {
    for (auto* queue : {&takers_, &ahead_}) {
        std::deque<Taker> failed = std::exchange(*queue, {});
        for (Taker& taker : failed)
            taker(error);
    }
}

/// Measures how long the pool takes to be full again.
void SlotPool::note_level() {
    const auto now = EventLoop::Clock::now();
    const bool full = takers_.empty() && waiting() >= demand_.target();
    if (!full && !short_since_) short_since_ = now;
    if (!full || !short_since_) return;
    ++refills_;
    refill_time_ += now - *short_since_;
    short_since_.reset();
}

void SlotPool::tell(Figures& figures) const {
    figures.slots_ready = waiting();
    figures.slots_target = demand_.target();
    figures.slot_hits = hits_;
    figures.slot_misses = misses_;
    figures.slot_refills = refills_;
    figures.slot_refill_seconds = std::chrono::duration<double>(refill_time_).count();
}

/// Ends blanks that are no longer needed, the oldest first.
void SlotPool::retire_surplus() {
    if (!takers_.empty() || !ahead_.empty()) return;
    while (!blanks_.empty() && waiting() > demand_.target()) {
        (void)signal_process(blanks_.front().parts.pidfd.get(), SIGKILL);
        retiring_.splice(retiring_.end(), blanks_, blanks_.begin());
    }
}

void SlotPool::remove(SlotId slot, std::function<void(Status)> done) {
    removals_.push_back({slot, std::move(done)});
    schedule();
}

void SlotPool::start_broker(BrokerOrder order) {
    brokers_.push_back(std::move(order));
    schedule();
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

void SlotPool::discard(std::vector<UniqueFd> descriptors) {
    std::erase_if(descriptors, [](const UniqueFd& fd) { return !fd; });
    std::vector<int> numbers;
    for (const UniqueFd& fd : descriptors)
        numbers.push_back(fd.get());
    for (std::span<const int> rest = numbers; !rest.empty() && closer_.socket;) {
        const auto part = rest.first(std::min(rest.size(), kMaxDescriptors));
        if (send_message(closer_.socket.get(), encode(DoneReply{}), part)) {
            rest = rest.subspan(part.size());
            continue;
        }
        // It is behind, or gone: then they are closed here.
        if (::waitpid(closer_.pid, nullptr, WNOHANG) == closer_.pid) (void)start_closer();
        return;
    }
}

void SlotPool::drain() {
    draining_ = true;
    while (!blanks_.empty()) {
        Blank blank = std::move(blanks_.front());
        blanks_.pop_front();
        blank.death.reset();
        const SlotId slot = blank.parts.slot;
        (void)signal_process(blank.parts.pidfd.get(), SIGKILL);
        ::waitpid(blank.parts.pid, nullptr, __WALL);
        remove(slot, [](const Status&) {});
    }
    fail_takers(Error(ErrorCode::unavailable, "the spawner is ending"));
}

bool SlotPool::idle() const {
    return removals_.empty() && brokers_.empty() && retiring_.empty() &&
           std::ranges::none_of(workers_, [](const WorkerState& state) { return state.busy(); });
}

void SlotPool::wake_after(EventLoop::Clock::duration delay) {
    if (wake_planned_) return;
    wake_planned_ = true;
    loop_->run_after(delay, [this] {
        wake_planned_ = false;
        serve_takers();
        schedule();
    });
}

/// Blanks that are there or being made.
std::size_t SlotPool::coming() const {
    const auto making = std::ranges::count_if(
        workers_, [](const WorkerState& state) { return state.making.has_value(); });
    return blanks_.size() + static_cast<std::size_t>(making);
}

bool SlotPool::refill_due() const {
    return !draining_ && coming() + lent_ < takers_.size() + ahead_.size() + demand_.target();
}

/// Whether blanks are for the host's image too: that takes a seventh of what making one costs.
bool SlotPool::wants_usr(EventLoop::Clock::time_point now) const {
    return !asked_for_images_ || now - host_image_at_ < kHostImageMemory;
}

void SlotPool::note_image(bool of_host) {
    asked_for_images_ = true;
    if (of_host) host_image_at_ = EventLoop::Clock::now();
}

/// Whoever waits has a new try: what was wrong may be over.
bool SlotPool::refill_allowed(EventLoop::Clock::time_point now) const {
    if (takers_.size() > coming()) return true;
    if (now < retry_at_) return false;
    const auto patience = serving_ > 0 ? kBurstPatience : kRefillPatience;
    if (short_since_ && now - *short_since_ >= patience) return true;
    return is_quiet(kQuietTime);
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
    if (refill_due()) wake_after(std::max<EventLoop::Clock::duration>(kQuietTime, retry_at_ - now));
    return false;
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
    remove_files_after(kDiscardDelay);
    removal.done(status);
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
    if (discarded.any()) remove_files_after(kDiscardDelay);
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

void SlotPool::on_blank_death(std::uint32_t serial) {
    for (auto* list : {&blanks_, &retiring_}) {
        const auto found = std::ranges::find_if(
            *list, [&](const Blank& blank) { return blank.parts.slot.serial == serial; });
        if (found == list->end()) continue;
        if (list == &blanks_)
            log::warn("a blank slot died", {{"slot", slot_name(found->parts.slot)}});
        Blank blank = std::move(*found);
        list->erase(found);
        blank.death.reset();
        ::waitpid(blank.parts.pid, nullptr, __WALL);
        remove(blank.parts.slot, [](const Status&) {});
        return;
    }
}

Result<SlotId> SlotPool::allocate() {
    if (free_indexes_.empty()) {
        return Error(ErrorCode::resource_exhausted,
                     "no address is left in " + host_->range.to_string());
    }
    SlotId slot;
    slot.index = free_indexes_.front();
    free_indexes_.pop_front();
    do {
        last_serial_ = (last_serial_ + 1) & kSerialMask;
    } while (!serials_.insert(last_serial_).second);
    slot.serial = last_serial_;
    return slot;
}

void SlotPool::give_back(SlotId slot) {
    serials_.erase(slot.serial);
    free_indexes_.push_back(slot.index);
}

}  // namespace opensandbox::runtime::native
