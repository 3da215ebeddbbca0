#include "base/log.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <fcntl.h>

/// Brokers for sandboxes whose agents ask for one (inside/broker_process.hpp). What an agent says
/// is not to be trusted, so it has no words: it ends its side of the control socket, and nothing is
/// ever read from ours.
namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// Until another takes the place of one that ended, doubled each time.
constexpr EventLoop::Clock::duration kFirstDelay = 1s;
constexpr EventLoop::Clock::duration kLongestDelay = 60s;

UniqueFd duplicate(const UniqueFd& fd) {
    return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

/// From here on the control socket serves this alone.
void SandboxTable::offer_broker(const Entry& sandbox) {
    if (!has_brokers(*host_)) return sandbox->parts.control.reset();
    sandbox->broker_delay = kFirstDelay;
    sandbox->broker_watch =
        loop_->watch(sandbox->parts.control.get(), EPOLLRDHUP,
                     [this, weak = std::weak_ptr(sandbox)](std::uint32_t events) {
                         const auto held = weak.lock();
                         if (!held) return;
                         held->broker_watch.reset();
                         // Both sides of the socket are gone with the agent.
                         if ((events & EPOLLHUP) == 0) start_broker(held);
                     });
}

void SandboxTable::start_broker(const Entry& sandbox) {
    if (sandbox->state != State::running || !sandbox->destroyed.empty()) return;
    // What keeps set-id files off such a volume holds for the agent and what comes from it, which
    // sessions do not.
    if (sandbox->lends) {
        return refuse_broker(*sandbox,
                             "isolated sessions are not available in a sandbox that can "
                             "write to a directory of the host");
    }
    SlotPool::BrokerOrder order;
    order.slot = sandbox->parts.slot;
    order.control = duplicate(sandbox->parts.control);
    order.agent = duplicate(sandbox->parts.pidfd);
    order.pid = sandbox->parts.pid;
    if (!order.control || !order.agent) return start_broker_later(sandbox);
    order.done = [this, weak = std::weak_ptr(sandbox)](Result<BrokerParts> parts) {
        on_broker(weak, std::move(parts));
    };
    pool_->start_broker(std::move(order));
}

void SandboxTable::on_broker(const std::weak_ptr<Sandbox>& sandbox, Result<BrokerParts> parts) {
    if (parts) {
        const pid_t pid = parts->pid;
        Broker& broker = brokers_[pid];
        broker.parts = std::move(*parts);
        broker.sandbox = sandbox;
        broker.death = loop_->watch(broker.parts.pidfd.get(), EPOLLIN,
                                    [this, pid](std::uint32_t) { on_broker_death(pid); });
        return;
    }
    const auto held = sandbox.lock();
    if (!held || held->state != State::running || !held->destroyed.empty()) return;
    refuse_broker(*held, parts.error().message());
    start_broker_later(sandbox);
}

void SandboxTable::refuse_broker(const Sandbox& sandbox, const std::string& reason) {
    log::warn("a sandbox gets no broker for isolated sessions",
              {{"sandbox", sandbox.id}, {"reason", reason}});
    ::send(sandbox.parts.control.get(), reason.data(), std::min<std::size_t>(reason.size(), 512),
           MSG_DONTWAIT | MSG_NOSIGNAL);
}

void SandboxTable::on_broker_death(pid_t pid) {
    const auto found = brokers_.find(pid);
    if (found == brokers_.end()) return;
    Broker broker = std::move(found->second);
    brokers_.erase(found);
    broker.death.reset();
    (void)process_end(broker.parts.pidfd.get());
    start_broker_later(broker.sandbox);
}

/// It usually ended with its sandbox, which is known by then.
void SandboxTable::start_broker_later(const std::weak_ptr<Sandbox>& sandbox) {
    const auto held = sandbox.lock();
    if (!held) return;
    const auto delay = held->broker_delay;
    held->broker_delay = std::min(2 * delay, kLongestDelay);
    loop_->run_after(delay, [this, sandbox] {
        if (const auto still = sandbox.lock()) start_broker(still);
    });
}

/// Whatever the agent may have sent is dropped where nobody waits: closing a socket can take its
/// time.
void SandboxTable::drop_control(Sandbox& sandbox) {
    sandbox.broker_watch.reset();
    if (!sandbox.parts.control) return;
    std::vector<UniqueFd> last;
    last.push_back(std::move(sandbox.parts.control));
    pool_->discard(std::move(last));
}

}  // namespace opensandbox::runtime::native
