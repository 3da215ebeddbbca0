#include "http/server.hpp"

#include "base/descriptor_limit.hpp"
#include "base/log.hpp"
#include "http/server_connection.hpp"
#include "http/server_core.hpp"

#include <algorithm>

namespace opensandbox::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kMaxSweepInterval{1000};
constexpr milliseconds kMinSweepInterval{5};
/// How long an exchange runs before its client is watched.
constexpr milliseconds kWatchDelay{20};
/// How long drain() waits for handlers to notice that their connection was cut.
constexpr milliseconds kCutGrace{1000};
/// How long one that was cut to make room has until another one is cut.
constexpr milliseconds kLeaveTime{100};
constexpr std::size_t kLeastConnections = 8;

Awaitable<void> accept_connections(std::shared_ptr<ServerCore> core,
                                   std::shared_ptr<net::Listener> listener) {
    while (!core->draining) {
        auto stream = co_await listener->accept();
        if (!stream) {
            if (stream.error().code() != ErrorCode::cancelled) {
                log::error("accepting connections ended", {{"error", stream.error().message()}});
            }
            co_return;
        }
        // Only who is there already may cost another its place.
        co_await core->await_room();
        if (core->draining) co_return;
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
      sweep_timer_(e) {
    // The other half is for what requests need themselves.
    std::size_t most = std::max(descriptor_limit() / 2, kLeastConnections);
    options.max_connections = std::min(options.max_connections, most);
}

void ServerCore::add(Tracked& item, Standing standing) {
    auto& standing_so = by_standing_[static_cast<std::size_t>(standing)];
    item.standing_ = standing;
    item.place_ = standing_so.insert(standing_so.end(), &item);
    item.index_ = open.size();
    open.push_back(&item);
    if (!sweeping_) arm_sweep();
}

void ServerCore::remove(Tracked& item) {
    open[item.index_] = open.back();
    open[item.index_]->index_ = item.index_;
    open.pop_back();
    by_standing_[static_cast<std::size_t>(item.standing_)].erase(item.place_);
    if (item.leaving_) --leaving_;
    changed.notify();
    room.notify();
    if (open.empty() && sweeping_) {
        sweeping_ = false;
        sweep_timer_.cancel();
    }
}

void ServerCore::stand(Tracked& item, Standing standing) {
    auto& from = by_standing_[static_cast<std::size_t>(item.standing_)];
    auto& to = by_standing_[static_cast<std::size_t>(standing)];
    to.splice(to.end(), from, item.place_);
    item.standing_ = standing;
    if (full_ && standing != Standing::kept) room.notify();
}

void ServerCore::make_room() {
    for (Standing standing : {Standing::waiting, Standing::waiting_known, Standing::unauthorized}) {
        auto& standing_so = by_standing_[static_cast<std::size_t>(standing)];
        if (standing_so.empty()) continue;
        Tracked& first = *standing_so.front();
        if (!std::exchange(first.leaving_, true)) ++leaving_;
        stand(first, Standing::kept);
        return first.cut();
    }
}

Awaitable<void> ServerCore::await_room() {
    auto self = shared_from_this();
    bool in_time = true;
    while (!draining && open.size() >= options.max_connections) {
        if (leaving_ == 0 || !in_time) make_room();
        full_ = true;
        in_time = co_await room.wait_for(kLeaveTime);
        full_ = false;
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
    watchers_.push_back({connection, epoch});
    if (watchers_.size() > 1) return;
    watch_timer_.expires_after(kWatchDelay);
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
        std::min({options.idle_timeout / 4, options.head_timeout / 4, kMaxSweepInterval});
    sweeping_ = true;
    sweep_timer_.expires_after(std::max(interval, kMinSweepInterval));
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
    end = steady_clock::now() + kCutGrace;
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
