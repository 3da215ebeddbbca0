#include "runtime/native/network/resolver.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/network/resolver_process.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr std::chrono::seconds kRestartDelay{1};

}  // namespace

Resolver::~Resolver() {
    end_process();
}

Status Resolver::start_process(UniqueFd control) {
    if (*uplink_) {
        return uplink_->start_resolver(range_, control.get(), sockets_->udp.get(),
                                       sockets_->tcp.get());
    }
    const pid_t pid = ::fork();
    if (pid < 0) return last_error("fork");
    if (pid == 0) run_resolver(*sockets_, range_, std::move(control));
    pid_ = pid;
    return {};
}

/// One that is no child of ours ends with its socket.
void Resolver::end_process() {
    watch_.reset();
    socket_.reset();
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
}

Status Resolver::start() {
    if (sockets_->port == 0) return {};
    auto pair = message_pair();
    if (!pair) return pair.error();
    if (auto s = start_process(std::move(pair->second)); !s) return s;
    socket_ = std::move(pair->first);
    watch_ = loop_->watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_end(); });
    for (const auto& [address, member] : members_)
        tell(member);
    return {};
}

void Resolver::on_end() {
    log::error("the resolver of sandboxes ended; another takes its place", {{"pid", pid_}});
    end_process();
    loop_->run_after(kRestartDelay, [this] {
        if (auto s = start(); !s) {
            log::error("sandboxes have no resolver", {{"reason", s.error().message()}});
        }
    });
}

void Resolver::tell(const NetworkMember& member) {
    if (!socket_) return;
    if (auto s = send_message(socket_.get(), encode(member)); !s) {
        log::error("the resolver does not learn a name", {{"reason", s.error().message()}});
    }
}

void Resolver::set(NetworkMember member) {
    tell(member);
    members_[member.address] = std::move(member);
}

void Resolver::remove(net::Ipv4Address address) {
    if (members_.erase(address.to_uint()) == 0) return;
    NetworkMember gone;
    gone.address = address.to_uint();
    tell(gone);
}

}  // namespace opensandbox::runtime::native
