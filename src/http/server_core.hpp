#pragma once

#include "http/serialize.hpp"
#include "http/server.hpp"
#include "net/task.hpp"

#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <vector>

namespace opensandbox::http {

/// What a connection is doing, in the order in which connections give way to new ones.
enum class Standing : std::uint8_t {
    waiting,        ///< for a request; none that was authorized has come yet
    waiting_known,  ///< for the next request, after one that was authorized
    unauthorized,   ///< in a request of somebody who may not be cut only while there is room
    kept,           ///< never cut for others
};

/// Something a server must close when it ends: a connection, or what an upgrade made of one.
class Tracked {
  public:
    virtual ~Tracked() = default;
    /// Closes the connection; operations in flight fail.
    virtual void cut() = 0;
    /// Whether it waits for the first byte of a request.
    [[nodiscard]] virtual bool idle() const { return false; }
    /// Gives back what it holds for a request that does not come.
    virtual void rest() {}

    /// Cut once this has passed.
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  private:
    friend struct ServerCore;
    std::size_t index_ = 0;
    Standing standing_ = Standing::kept;
    std::list<Tracked*>::iterator place_;
    bool leaving_ = false;  ///< cut to make room, and not gone yet
};

class ServerConnection;

/// What the connections of one server share.
struct ServerCore : std::enable_shared_from_this<ServerCore> {
    ServerCore(asio::any_io_executor e, Handler h, ServerOptions o);
    virtual ~ServerCore() = default;

    void add(Tracked& item, Standing standing);
    void remove(Tracked& item);
    /// Puts it behind all others of that standing.
    void stand(Tracked& item, Standing standing);
    /// Returns when one more connection has room, cutting others for it; or when draining.
    Awaitable<void> await_room();
    /// Has a connection watch for the end of its client, if the same exchange still runs in a short
    /// while: most are over by then.
    void watch_soon(std::shared_ptr<ServerConnection> connection);
    /// Ends accepting.
    void close_listeners();
    void cut_all();

    asio::any_io_executor executor;
    Handler handler;
    ServerOptions options;
    HttpDate date;
    bool draining = false;
    std::vector<std::shared_ptr<net::Listener>> listeners;
    std::vector<Tracked*> open;
    net::Event changed;  ///< something was closed; the drain waits for it
    net::Event room;     ///< something was closed or may be cut; a full accept loop waits for it

  private:
    /// One timer looks after the deadlines of all connections: setting a deadline costs nothing.
    void arm_sweep();
    void sweep();
    void start_watches();
    /// Cuts the connection that is the first to give way, if there is one.
    void make_room();

    std::array<std::list<Tracked*>, 4> by_standing_;  ///< each with the longest standing in front
    std::size_t leaving_ = 0;
    bool full_ = false;  ///< an accept loop waits for room

    /// One that asked for a watch, with the exchange it asked for.
    struct Watcher {
        std::weak_ptr<ServerConnection> connection;
        std::uint64_t epoch;
    };
    std::vector<Watcher> watchers_;
    asio::steady_timer watch_timer_;
    asio::steady_timer sweep_timer_;
    bool sweeping_ = false;
};

}  // namespace opensandbox::http
