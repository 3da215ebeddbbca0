#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::docker {

/// Ports of the host for containers: chosen at random from a range, tried by binding, and kept from
/// other creates of this process until the engine has bound them (lifecycle 6.4).
class HostPorts {
  public:
    /// Whether a port of the host can be bound just now.
    using Probe = std::function<bool(std::uint16_t)>;

    HostPorts(std::uint16_t first, std::uint16_t last, Probe probe)
        : first_(first), last_(last), probe_(std::move(probe)) {}

    /// Ports that are given back when this is destroyed.
    class Reservation {
      public:
        Reservation() = default;
        Reservation(HostPorts& owner, std::vector<std::uint16_t> p)
            : ports(std::move(p)), owner_(&owner) {}
        Reservation(Reservation&& other) noexcept;
        Reservation& operator=(Reservation&& other) noexcept;
        Reservation(const Reservation&) = delete;
        Reservation& operator=(const Reservation&) = delete;
        ~Reservation();

        std::vector<std::uint16_t> ports;

      private:
        void release();
        HostPorts* owner_ = nullptr;
    };

    /// So many different ports. `resource_exhausted` after 50 tries for one.
    Result<Reservation> reserve(std::size_t count);

  private:
    std::uint16_t first_;
    std::uint16_t last_;
    Probe probe_;
    std::set<std::uint16_t> reserved_;
};

/// Tries to bind TCP on that IPv4 address, or on the wildcard where the address is none of this
/// host's.
bool can_bind(const std::string& address, std::uint16_t port);

}  // namespace opensandbox::runtime::docker
