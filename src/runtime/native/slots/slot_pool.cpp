#include "runtime/native/slots/slot_pool.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
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
    remove_files_soon();
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

void SlotPool::refill_later(EventLoop::Clock::time_point now) {
    wake_after(std::max<EventLoop::Clock::duration>(kQuietTime, retry_at_ - now));
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
