#include "http/server.hpp"

#include "base/log.hpp"
#include "http/server_connection.hpp"
#include "http/server_core.hpp"

#include <algorithm>

namespace opensandbox::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds max_sweep_interval{1000};
constexpr milliseconds min_sweep_interval{5};
/// How long an exchange runs before its client is watched.
constexpr milliseconds watch_delay{20};
/// How long drain() waits for handlers to notice that their connection was cut.
constexpr milliseconds cut_grace{1000};

Awaitable<void> accept_connections(std::shared_ptr<ServerCore> core,
                                   std::shared_ptr<net::Listener> listener) {
    while (!core->draining) {
        if (core->open.size() >= core->options.max_connections) {
            co_await core->room.wait();
            continue;
        }
        auto stream = co_await listener->accept();
        if (!stream) {
            if (stream.error().code() != ErrorCode::cancelled) {
                log::error("accepting connections ended", {{"error", stream.error().message()}});
            }
            co_return;
        }
        auto connection = std::make_shared<ServerConnection>(core, std::move(*stream));
        net::spawn(core->executor, serve_connection(std::move(connection)), "http connection");
    }
}

}  // namespace

ServerCore::ServerCore(asio::any_io_executor e, Handler h, ServerOptions o)
    : executor(e),
      handler(std::move(h)),
      options(o),
      changed(e),
      room(e),
      watch_timer_(e),
      sweep_timer_(std::move(e)) {}

void ServerCore::add(Tracked& item) {
    item.index_ = open.size();
    open.push_back(&item);
    if (!sweeping_) arm_sweep();
}

void ServerCore::remove(Tracked& item) {
    open[item.index_] = open.back();
    open[item.index_]->index_ = item.index_;
    open.pop_back();
    changed.notify();
    room.notify();
    if (open.empty() && sweeping_) {
        sweeping_ = false;
        sweep_timer_.cancel();
    }
}

void ServerCore::close_listeners() {
    draining = true;
    for (auto& listener : listeners)
        listener->close();
    listeners.clear();
    room.notify();
}

void ServerCore::cut_all() {
    for (Tracked* item : std::vector<Tracked*>(open))
        item->cut();
}

void ServerCore::watch_soon(std::shared_ptr<ServerConnection> connection) {
    std::uint64_t epoch = connection->epoch();
    watchers_.push_back({std::move(connection), epoch});
    if (watchers_.size() > 1) return;
    watch_timer_.expires_after(watch_delay);
    watch_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& failure) {
        auto self = weak.lock();
        if (!failure && self) self->start_watches();
    });
}

void ServerCore::start_watches() {
    for (Watcher& watcher : std::exchange(watchers_, {})) {
        auto connection = watcher.connection.lock();
        if (connection && connection->epoch() == watcher.epoch) connection->start_gone_watch();
    }
}

void ServerCore::arm_sweep() {
    auto interval =
        std::min({options.idle_timeout / 4, options.head_timeout / 4, max_sweep_interval});
    sweeping_ = true;
    sweep_timer_.expires_after(std::max(interval, min_sweep_interval));
    sweep_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& failure) {
        auto self = weak.lock();
        if (!failure && self && self->sweeping_) self->sweep();
    });
}

void ServerCore::sweep() {
    auto now = steady_clock::now();
    for (Tracked* item : std::vector<Tracked*>(open)) {
        if (item->deadline <= now) {
            item->cut();
        } else if (item->idle()) {
            item->rest();
        }
    }
    arm_sweep();
}

struct Server::State final : ServerCore {
    using ServerCore::ServerCore;
};

Server::Server(asio::any_io_executor executor, Handler handler, ServerOptions options)
    : state_(std::make_shared<State>(std::move(executor), std::move(handler), options)) {}

Server::~Server() {
    state_->close_listeners();
    state_->cut_all();
}

void Server::serve(std::unique_ptr<net::Listener> listener) {
    std::shared_ptr<net::Listener> shared = std::move(listener);
    state_->listeners.push_back(shared);
    net::spawn(state_->executor, accept_connections(state_, std::move(shared)), "http accept");
}

Awaitable<void> Server::drain(milliseconds grace) {
    std::shared_ptr<ServerCore> core = state_;
    core->close_listeners();
    for (Tracked* item : std::vector<Tracked*>(core->open)) {
        if (item->idle()) item->cut();
    }
    auto end = steady_clock::now() + grace;
    while (!core->open.empty()) {
        auto left = end - steady_clock::now();
        if (left <= left.zero()) break;
        co_await core->changed.wait_for(left);
    }
    core->cut_all();
    end = steady_clock::now() + cut_grace;
    while (!core->open.empty()) {
        auto left = end - steady_clock::now();
        if (left <= left.zero()) break;
        co_await core->changed.wait_for(left);
    }
}

std::size_t Server::open_connections() const {
    return state_->open.size();
}

}  // namespace opensandbox::http
