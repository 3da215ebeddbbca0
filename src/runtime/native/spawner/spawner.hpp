#pragma once

#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/ground/message_queue.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/network/resolver.hpp"
#include "runtime/native/slots/slot_pool.hpp"
#include "runtime/native/spawner/egress/egress_guard.hpp"
#include "runtime/native/spawner/sandboxes/networks.hpp"
#include "runtime/native/spawner/sandboxes/sandbox_table.hpp"

#include <list>
#include <memory>
#include <set>
#include <string>

namespace opensandbox::runtime::native {

/// Serves the servers that connect, until nobody needs it: no server and no sandbox for a while.
class Spawner {
  public:
    /// The socket already listens. Borrows the host.
    Spawner(std::unique_ptr<EventLoop> loop, const Host& host, Journal journal, UniqueFd socket);

    /// Adopts what lives and removes what does not.
    Status start();
    enum class End : std::uint8_t {
        done,        ///< everything is gone, unless sandboxes could not be ended
        handed_over  ///< sandboxes live on, for the next spawner to adopt
    };
    /// Until nobody needs it or `signals` (a signalfd) speaks. hand_over_signal asks for room for
    /// another spawner, any other for the end.
    End run(int signals);

  private:
    struct Connection {
        UniqueFd socket;
        bool greeted = false;
        bool broken = false;
        std::optional<Figures> told;  ///< the last it was sent
        std::unique_ptr<MessageQueue> outgoing;
        EventLoop::Watch watch;
        std::set<std::string> snapshots;  ///< that it waits for
        std::set<std::string> bases;      ///< of copies that it makes
    };
    using Peer = std::weak_ptr<Connection>;

    Status remove_leftovers(const std::vector<SlotId>& keep);
    void on_connect();
    void on_message(const std::shared_ptr<Connection>& peer);
    void greet(const std::shared_ptr<Connection>& peer, const Hello& hello);
    void handle(const std::shared_ptr<Connection>& peer, Message message);
    void take_snapshot(const std::shared_ptr<Connection>& peer, const SnapshotRequest& request);
    void send_text(const Peer& peer, std::uint64_t request, Result<std::string> text);
    /// Tells the peer how its request ended.
    std::function<void(const Status&)> settle(const Peer& peer, std::uint64_t request);
    void send(const Peer& peer, const Message& message);
    void close(const std::shared_ptr<Connection>& peer);
    bool announce_figures();
    [[nodiscard]] bool needed() const;
    void end_everything();
    void hand_over();

    std::unique_ptr<EventLoop> loop_;
    const Host* host_;
    SlotPool pool_;
    SnapshotTable snapshots_;
    Resolver resolver_;
    Networks networks_;
    EgressGuard egress_;
    SandboxTable sandboxes_;
    UniqueFd socket_;
    EventLoop::Watch accept_watch_;
    EventLoop::Watch uplink_watch_;
    std::list<std::shared_ptr<Connection>> peers_;
    EventLoop::Clock::time_point told_at_{};
};

/// The hidden role `spawner`: parent of all sandboxes, started by the runtime, outlives it.
int spawner_main(int argc, char** argv);

}  // namespace opensandbox::runtime::native
