#include "runtime/native/spawner/spawner.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/network/gateway_addresses.hpp"
#include "runtime/native/network/uplink_socket.hpp"
#include "runtime/native/records/boot_record.hpp"
#include "runtime/native/slots/slot_maker.hpp"
#include "version.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <unistd.h>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxPeers = 16;
/// Without server and sandboxes it stays this long, so that a restart of the server finds it.
constexpr auto kIdleTime = 3s;
/// Figures are for people: telling them must not cost a request anything.
constexpr auto kFiguresInterval = 100ms;
constexpr auto kTendInterval = 500ms;

/// Until a server says what it wants.
PoolSettings fixed_pool(std::uint32_t size) {
    PoolSettings settings;
    settings.size = size;
    settings.max = size;
    return settings;
}

bool same_user(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == ::geteuid());
}

}  // namespace

Spawner::Spawner(std::unique_ptr<EventLoop> loop, const Host& host, Journal journal,
                 UniqueFd socket)
    : loop_(std::move(loop)),
      host_(&host),
      pool_(*loop_, host),
      snapshots_(*loop_, host),
      resolver_(*loop_, host.uplink, host.resolver_sockets, host.range),
      networks_(host, resolver_),
      egress_(*loop_, host),
      sandboxes_(*loop_, host, pool_, snapshots_, networks_, egress_, std::move(journal)),
      socket_(std::move(socket)) {}

Status Spawner::start() {
    if (auto s = record_boot(host_->options.state_directory); !s) return s;
    if (auto s = resolver_.start(); !s) return s;
    auto kept = sandboxes_.adopt();
    if (!kept) return kept.error();
    if (auto s = remove_leftovers(*kept); !s) return s;
    egress_.adopt([this](const std::string& id) { return sandboxes_.runs(id); });
    if (host_->network()) sweep_gateways(host_->gateways());
    if (auto s = snapshots_.start([this] { return sandboxes_.snapshot_layers(); }); !s) return s;
    if (auto s = pool_.start(*kept, fixed_pool(host_->options.pool_size)); !s) return s;
    sandboxes_.on_exit([this](const std::string& id, const Exit& exit) {
        for (const auto& peer : std::list(peers_)) {
            if (peer->greeted) send(peer, ExitNotice{id, exit});
        }
    });
    if (host_->uplink) {
        uplink_watch_ = loop_->watch(host_->uplink.descriptor(), EPOLLIN, [this](std::uint32_t) {
            log::error("the process that connects sandboxes with the world is gone");
            uplink_watch_.reset();
            if (auto s = hold_network_namespace(host_->options); !s) {
                log::error("sandboxes lose their network", {{"reason", s.error().message()}});
            }
            // Only another spawner, which begins in the host's network namespace, can start one.
            ::kill(::getpid(), kHandOverSignal);
        });
    }
    accept_watch_ = loop_->watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_connect(); });
    return {};
}

/// Whatever carries our names and belongs to no journalled sandbox is from an earlier life.
Status Spawner::remove_leftovers(const std::vector<SlotId>& keep) {
    std::set<std::string> names = host_->cgroups.names();
    std::error_code error;
    const auto sandboxes = host_->options.sandboxes_directory();
    for (const auto& entry : std::filesystem::directory_iterator(sandboxes, error)) {
        names.insert(entry.path().filename().string());
    }
    if (host_->network()) {
        auto routes = net::RouteSocket::open();
        if (!routes) return routes.error();
        auto links = routes->list_links(host_->link_prefix());
        if (!links) return links.error();
        for (const net::Link& link : *links) {
            names.insert("s" + link.name.substr(host_->link_prefix().size()));
        }
    }
    for (const SlotId& slot : keep)
        names.erase(slot_name(slot));
    auto maker = SlotMaker::open(*host_);
    if (!maker) return maker.error();
    for (const std::string& name : names) {
        const auto serial = slot_serial(name);
        if (!serial) continue;
        if (auto s = maker->remove({*serial, 0}, false); !s) {
            log::warn("remains of an earlier life stay",
                      {{"slot", name}, {"reason", s.error().message()}});
        }
    }
    return {};
}

bool Spawner::needed() const {
    return !peers_.empty() || sandboxes_.size() > 0;
}

Spawner::End Spawner::run(int signals) {
    int received = 0;
    auto signal_watch = loop_->watch(signals, EPOLLIN, [&](std::uint32_t) {
        signalfd_siginfo info{};
        if (::read(signals, &info, sizeof info) == sizeof info)
            received = static_cast<int>(info.ssi_signo);
    });
    auto needed_at = EventLoop::Clock::now();
    auto tended_at = needed_at;
    while (received == 0) {
        loop_->run_once(announce_figures() ? kTendInterval : kFiguresInterval);
        const auto now = EventLoop::Clock::now();
        if (now - tended_at > kTendInterval) {
            tended_at = now;
            pool_.tend();
            sandboxes_.tend_warm();
        }
        if (needed()) needed_at = now;
        if (now - needed_at > kIdleTime) break;
    }
    accept_watch_.reset();
    ::unlink(host_->options.socket_path().c_str());
    if (received == kHandOverSignal) {
        hand_over();
        return End::handed_over;
    }
    end_everything();
    return End::done;
}

/// What has begun is ended; sandboxes that run are left as a spawner that died would leave them.
void Spawner::hand_over() {
    log::info("another spawner takes over");
    for (const auto& peer : std::list(peers_))
        close(peer);
    sandboxes_.drop_warm();
    pool_.drain();
    const auto deadline = EventLoop::Clock::now() + 30s;
    while ((!sandboxes_.at_rest() || sandboxes_.any_warm() || !pool_.idle()) &&
           EventLoop::Clock::now() < deadline) {
        loop_->run_once(100ms);
    }
}

void Spawner::end_everything() {
    for (const Observed& item : sandboxes_.list()) {
        sandboxes_.destroy(item.id, [](const Status&) {});
    }
    sandboxes_.drop_warm();
    pool_.drain();
    const auto begun = EventLoop::Clock::now();
    const auto wait_while = [&](EventLoop::Clock::duration most, auto&& unfinished) {
        while (unfinished() && EventLoop::Clock::now() < begun + most)
            loop_->run_once(100ms);
    };
    wait_while(30s,
               [&] { return sandboxes_.size() > 0 || sandboxes_.any_warm() || !pool_.idle(); });
    // What is left of their files the next spawner removes.
    wait_while(5s, [&] { return pool_.removes_files(); });
}

void Spawner::on_connect() {
    UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (!same_user(fd.get()) || peers_.size() >= kMaxPeers) {
        log::warn("a connection to the spawner was refused");
        return;
    }
    widen_buffers(fd.get());
    auto peer = std::make_shared<Connection>();
    peer->socket = std::move(fd);
    peer->outgoing =
        std::make_unique<MessageQueue>(*loop_, peer->socket.get(), [this, weak = Peer(peer)] {
            if (const auto held = weak.lock()) close(held);
        });
    peer->watch = loop_->watch(peer->socket.get(), EPOLLIN, [this, weak = Peer(peer)](auto) {
        if (const auto held = weak.lock()) on_message(held);
    });
    peers_.push_back(std::move(peer));
}

void Spawner::close(const std::shared_ptr<Connection>& peer) {
    peer->broken = true;
    peer->watch.reset();
    peers_.remove(peer);
    for (const std::string& snapshot : peer->snapshots)
        sandboxes_.cancel_snapshot(snapshot);
    for (const std::string& base : peer->bases)
        (void)snapshots_.remove(base);
}

void Spawner::on_message(const std::shared_ptr<Connection>& peer) {
    auto received = receive_message(peer->socket.get());
    if (!received && received.error().code() == ErrorCode::resource_exhausted) return;
    if (!received || received->closed) return close(peer);
    auto message = decode(received->bytes);
    ::explicit_bzero(received->bytes.data(), received->bytes.size());
    if (!message) {
        log::warn("a server sent what is no message", {{"reason", message.error().message()}});
        return close(peer);
    }
    if (const auto* hello = std::get_if<Hello>(&*message)) return greet(peer, *hello);
    if (!peer->greeted) return close(peer);
    handle(peer, std::move(*message));
}

void Spawner::greet(const std::shared_ptr<Connection>& peer, const Hello& hello) {
    send(peer, HelloReply{kProtocolVersion, kSpawnerProgram, host_->range.to_string(),
                          host_->options.address_range6, host_->options.publish_host,
                          host_->options.runsc, host_->off});
    if (hello.version != kProtocolVersion) return;
    peer->greeted = true;
    PoolSettings pool = hello.pool;
    pool.size = std::min(pool.size, 1000U);
    pool.max = std::min(pool.max, 1000U);
    pool_.resize(pool);
    egress_.configure(hello.egress);
}

void Spawner::handle(const std::shared_ptr<Connection>& peer, Message message) {
    const Peer weak = peer;
    if (auto* create = std::get_if<CreateRequest>(&message)) {
        const std::uint64_t number = create->request;
        sandboxes_.create(std::move(*create), [this, weak, number](Result<HostPorts> ports) {
            if (ports)
                send(weak, CreateReply{number, std::move(*ports)});
            else
                send(weak, FailedReply{number, ports.error()});
        });
    } else if (auto* destroy = std::get_if<DestroyRequest>(&message)) {
        sandboxes_.destroy(destroy->id, settle(weak, destroy->request));
    } else if (auto* pause = std::get_if<PauseRequest>(&message)) {
        sandboxes_.pause(pause->id, settle(weak, pause->request));
    } else if (auto* resume = std::get_if<ResumeRequest>(&message)) {
        sandboxes_.resume(resume->id, settle(weak, resume->request));
    } else if (auto* snapshot = std::get_if<SnapshotRequest>(&message)) {
        take_snapshot(peer, *snapshot);
    } else if (auto* removal = std::get_if<RemoveSnapshotRequest>(&message)) {
        auto removed = snapshots_.remove(removal->snapshot);
        if (removed) peer->bases.erase(removal->snapshot);
        settle(weak, removal->request)(removed);
    } else if (auto* logs = std::get_if<LogsRequest>(&message)) {
        send_text(peer, logs->request, sandboxes_.output(logs->id));
    } else if (auto* inspect = std::get_if<InspectRequest>(&message)) {
        auto view = sandboxes_.view(inspect->id);
        send_text(peer, inspect->request,
                  view ? Result<std::string>(format_view(*view)) : view.error());
    } else if (auto* slots = std::get_if<SlotsRequest>(&message)) {
        send_text(peer, slots->request, sandboxes_.slots(slots->limit));
    } else if (auto* warm = std::get_if<WarmImages>(&message)) {
        sandboxes_.keep_warm(std::move(warm->images));
    } else if (auto* list = std::get_if<ListRequest>(&message)) {
        for (Observed& item : sandboxes_.list()) {
            send(peer, ObservedReply{list->request, std::move(item)});
        }
        send(peer, DoneReply{list->request});
    } else {
        close(peer);
    }
}

void Spawner::take_snapshot(const std::shared_ptr<Connection>& peer,
                            const SnapshotRequest& request) {
    const Peer weak = peer;
    peer->snapshots.insert(request.snapshot);
    sandboxes_.snapshot(request.id, request.snapshot, request.for_copies,
                        [weak, name = request.snapshot, for_copies = request.for_copies,
                         told = settle(weak, request.request)](const Status& status) {
                            if (const auto held = weak.lock()) {
                                held->snapshots.erase(name);
                                if (status && for_copies) held->bases.insert(name);
                            }
                            told(status);
                        });
}

void Spawner::send_text(const Peer& peer, std::uint64_t request, Result<std::string> text) {
    if (!text) return send(peer, FailedReply{request, text.error()});
    constexpr std::size_t kPiece = 64 * 1024;
    for (std::size_t at = 0; at < text->size(); at += kPiece)
        send(peer, TextReply{request, text->substr(at, kPiece)});
    send(peer, DoneReply{request});
}

std::function<void(const Status&)> Spawner::settle(const Peer& peer, std::uint64_t request) {
    return [this, peer, request](const Status& status) {
        if (status)
            send(peer, DoneReply{request});
        else
            send(peer, FailedReply{request, status.error()});
    };
}

void Spawner::send(const Peer& peer, const Message& message) {
    const auto held = peer.lock();
    if (!held || held->broken) return;
    held->outgoing->send(encode(message));
}

/// Tells figures that changed, not too often; false when something is left to be told.
bool Spawner::announce_figures() {
    Figures figures;
    pool_.tell(figures);
    sandboxes_.warm().tell(figures);
    figures.sandboxes = sandboxes_.size();
    if (std::ranges::all_of(peers_, [&](const auto& peer) { return peer->told == figures; })) {
        return true;
    }
    const auto now = EventLoop::Clock::now();
    if (now - told_at_ < kFiguresInterval) return false;
    told_at_ = now;
    // A copy, since a peer that is gone is taken off the list.
    for (const auto& peer : std::list(peers_)) {
        if (!peer->greeted || !peer->outgoing->empty() || peer->told == figures) continue;
        peer->told = figures;
        send(peer, FiguresNotice{figures});
    }
    return true;
}

}  // namespace opensandbox::runtime::native
