#include "base/log.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

/// What makes, hands over and ends the slots that WarmSlots wants.
namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// Programs may load large libraries, several of them at once.
constexpr auto kWarmingTimeout = 120s;
/// A sandbox is taken now: what takes its place may wait until that one runs.
constexpr auto kRefillDelay = 50ms;
/// Mounting images ahead waits for a pause of this length.
constexpr auto kQuietTime = 10ms;

/// The sandbox itself may no longer do that.
Status set_hostname(int pidfd, const std::string& name) {
    const UniqueFd own(::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
    if (!own) return last_error("open the own host name's namespace");
    if (::setns(pidfd, CLONE_NEWUTS) < 0) return last_error("enter the host name's namespace");
    auto status = check(::sethostname(name.data(), name.size()), "sethostname");
    if (::setns(own.get(), CLONE_NEWUTS) < 0) return last_error("leave the host name's namespace");
    return status;
}

}  // namespace

void SandboxTable::keep_warm(std::vector<CreateRequest> images) {
    for (const SlotId slot : warm_.keep(std::move(images)))
        end_warm(slot);
    tend_warm();
}

void SandboxTable::drop_warm() {
    warm_.clear();
    for (const auto& [serial, sandbox] : warming_)
        (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
}

void SandboxTable::tend_warm() {
    const auto now = EventLoop::Clock::now();
    end_late_warm(now);
    warm_.share(can_mount_ahead() ? pool_->lendable() : 0, pool_->idle_seconds());
    for (const SlotId slot : warm_.surplus(now))
        end_warm(slot);
    while (const auto wanted = warm_.next(now, pool_->is_quiet(kQuietTime))) {
        pool_->lend(warm_.mounted());
        start_warm(*wanted);
    }
    pool_->lend(warm_.mounted());
}

/// In the next pause: what is served now is not to be slowed down.
void SandboxTable::tend_warm_after(EventLoop::Clock::duration delay) {
    if (std::exchange(tending_soon_, true)) return;
    loop_->run_after(delay, [this] {
        tending_soon_ = false;
        tend_warm();
        if (!pool_->is_quiet(kQuietTime)) tend_warm_after(kQuietTime);
    });
}

/// gVisor's slots begin otherwise; and where no cgroup limits a sandbox, what limits its processes
/// has to be there before the first of them.
bool SandboxTable::can_mount_ahead() const {
    const auto& cgroups = host_->cgroups;
    return !host_->gvisor() &&
           (!host_->options.rootless || (cgroups.limits("memory") && cgroups.limits("pids")));
}

void SandboxTable::end_warm(SlotId slot) {
    const auto found = warming_.find(slot.serial);
    if (found == warming_.end()) return;
    (void)signal_process(found->second->parts.pidfd.get(), SIGKILL);
}

/// Takes a blank and lets it become what the image says, up to where a sandbox would begin.
void SandboxTable::start_warm(const WarmSlots::Order& order) {
    auto sandbox = std::make_shared<Sandbox>();
    sandbox->request = order.request;
    sandbox->digest = order.request.plan.image.digest;
    sandbox->snapshot_layers = order.request.plan.snapshot_layers;
    sandbox->warm_key = order.key;
    pool_->take_ahead([this, sandbox](Result<SlotParts> parts) {
        if (!parts) return fail_warm(sandbox->warm_key, parts.error());
        const SlotId slot = parts->slot;
        warming_.emplace(slot.serial, sandbox);
        sandbox->state = State::starting;
        sandbox->parts = std::move(*parts);
        if (auto status = activate(*sandbox); !status) {
            fail_warm(sandbox->warm_key, status.error());
            (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
        } else {
            sandbox->control_watch = loop_->watch(sandbox->parts.control.get(), EPOLLIN,
                                                  [this, sandbox](auto) { on_warm(sandbox); });
            sandbox->warm_by = EventLoop::Clock::now() + kWarmingTimeout;
        }
        sandbox->death_watch = loop_->watch(sandbox->parts.pidfd.get(), EPOLLIN,
                                            [this, sandbox](auto) { on_warm_death(sandbox); });
    });
}

void SandboxTable::end_late_warm(EventLoop::Clock::time_point now) {
    for (const auto& [serial, sandbox] : warming_) {
        if (!sandbox->control_watch || now < sandbox->warm_by) continue;
        fail_warm(sandbox->warm_key, Error(ErrorCode::timeout, "did not become ready in time"));
        sandbox->control_watch.reset();
        (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
    }
}

void SandboxTable::fail_warm(const std::string& key, const Error& error) {
    // One that nobody wants any more failed no one.
    const std::string image = warm_.reference(key);
    if (image.empty()) return;
    log::warn("a warm slot did not start", {{"image", image}, {"reason", error.message()}});
    warm_.failed(key, EventLoop::Clock::now());
}

void SandboxTable::on_warm(const Entry& sandbox) {
    sandbox->control_watch.reset();
    auto received = receive_message(sandbox->parts.control.get());
    const auto message =
        received && !received->closed ? decode(received->bytes) : Result<Message>(Error());
    if (message && std::holds_alternative<WarmReady>(*message)) {
        sandbox->state = State::waiting;
        pool_->discard(std::move(sandbox->scaffold));
        sandbox->scaffold.clear();
        const bool wanted = warm_.ready(sandbox->warm_key, sandbox->parts.slot);
        if (!wanted) (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
        return tend_warm();
    }
    const auto* failed = message ? std::get_if<FailedReply>(&*message) : nullptr;
    fail_warm(
        sandbox->warm_key,
        failed ? failed->error : Error(ErrorCode::internal, "the slot ended before it was ready"));
    (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
}

void SandboxTable::on_warm_death(const Entry& sandbox) {
    if (sandbox->control_watch) {
        fail_warm(sandbox->warm_key,
                  Error(ErrorCode::internal, "the slot ended before it was ready"));
    }
    sandbox->control_watch.reset();
    sandbox->death_watch.reset();
    (void)process_end(sandbox->parts.pidfd.get());
    const SlotId slot = sandbox->parts.slot;
    warm_.gone(sandbox->warm_key, slot);
    warming_.erase(slot.serial);
    sandbox->parts = {};
    sandbox->scaffold.clear();
    pool_->remove(slot, [](const Status&) {});
}

/// The sandbox begins in a slot that waits for one like it; false when there is none.
bool SandboxTable::begin_warm(const Entry& sandbox) {
    const bool mounted = sandbox->request.warm.empty();
    tend_warm_after(kRefillDelay);
    while (auto slot = warm_.take(sandbox->request, EventLoop::Clock::now())) {
        if (mounted) pool_->take_lent();
        pool_->lend(warm_.mounted());
        const auto found = warming_.find(slot->serial);
        if (found == warming_.end()) continue;
        const Entry warm = found->second;
        // One that is to be guarded is told when it is.
        sandbox->from_warm = sandbox->request.egress.wanted;
        auto status = sandbox->from_warm ? Status() : hand_over(*sandbox, warm->parts);
        if (!status) {
            log::warn("a warm slot is of no use", {{"reason", status.error().message()}});
            (void)signal_process(warm->parts.pidfd.get(), SIGKILL);
            continue;
        }
        warming_.erase(found);
        warm->death_watch.reset();
        sandbox->parts = std::move(warm->parts);
        sandbox->port = warm->port;
        sandbox->state = State::starting;
        if (sandbox->from_warm) return true;
        if (auto s = forget_request(*sandbox); !s) fail(sandbox, s.error());
        return true;
    }
    return false;
}

/// A slot that waited warm learns whose it is.
Status SandboxTable::settle_warm(Sandbox& sandbox) {
    if (auto s = hand_over(sandbox, sandbox.parts); !s) return s.error().within("warm slot");
    return forget_request(sandbox);
}

/// Only what a spawner to come has to know is kept of it.
Status SandboxTable::forget_request(Sandbox& sandbox) {
    const SandboxDescription description = describe(sandbox.request);
    ::explicit_bzero(sandbox.request.agent_token.data(), sandbox.request.agent_token.size());
    sandbox.request = {};
    return write_down(sandbox, description);
}

/// What a slot that is somebody's now has to know. Nothing of it may stay here.
Status SandboxTable::hand_over(Sandbox& sandbox, const SlotParts& warm) const {
    const auto cgroup = SlotCgroup::adopt(host_->cgroups, slot_name(warm.slot));
    if (auto s = cgroup.set_limits(sandbox.request.plan.limits); !s)
        return s.error().within("limits");
    cgroup.set_requests(sandbox.request.cpu_request, sandbox.request.memory_request);
    if (auto s = set_hostname(warm.pidfd.get(), sandbox.request.plan.network.hostname); !s)
        return s;
    std::string bytes = encode(sandbox.request);
    auto sent = send_message(warm.control.get(), bytes);
    ::explicit_bzero(bytes.data(), bytes.size());
    return sent;
}

}  // namespace opensandbox::runtime::native
