#include "runtime/docker/host_ports.hpp"

#include "base/identifier.hpp"
#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace opensandbox::runtime::docker {
namespace {

constexpr int kTries = 50;

/// 0, or errno.
int try_bind(in_addr address, std::uint16_t port) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return errno;
    int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr = address;
    at.sin_port = htons(port);
    return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 ? 0 : errno;
}

}  // namespace

bool can_bind(const std::string& address, std::uint16_t port) {
    in_addr wanted{};
    ::inet_pton(AF_INET, address.c_str(), &wanted);
    int problem = try_bind(wanted, port);
    if (problem == EADDRNOTAVAIL) problem = try_bind(in_addr{}, port);
    return problem == 0;
}

Result<HostPorts::Reservation> HostPorts::reserve(std::size_t count) {
    Reservation reservation(*this, {});
    while (reservation.ports.size() < count) {
        bool found = false;
        for (int i = 0; i < kTries && !found; ++i) {
            std::uint32_t random = 0;
            random_bytes(&random, sizeof random);
            auto port = static_cast<std::uint16_t>(first_ + random % (last_ - first_ + 1U));
            if (reserved_.contains(port) || !probe_(port)) continue;
            reserved_.insert(port);
            reservation.ports.push_back(port);
            found = true;
        }
        if (!found) {
            return Error(ErrorCode::resource_exhausted,
                         "no free port of the host from " + std::to_string(first_) + " to " +
                             std::to_string(last_) + " in " + std::to_string(kTries) + " tries");
        }
    }
    return reservation;
}

HostPorts::Reservation::Reservation(Reservation&& other) noexcept
    : ports(std::move(other.ports)), owner_(std::exchange(other.owner_, nullptr)) {}

HostPorts::Reservation& HostPorts::Reservation::operator=(Reservation&& other) noexcept {
    if (this != &other) {
        release();
        ports = std::move(other.ports);
        owner_ = std::exchange(other.owner_, nullptr);
    }
    return *this;
}

HostPorts::Reservation::~Reservation() {
    release();
}

void HostPorts::Reservation::release() {
    if (!owner_) return;
    for (std::uint16_t port : ports)
        owner_->reserved_.erase(port);
}

}  // namespace opensandbox::runtime::docker
