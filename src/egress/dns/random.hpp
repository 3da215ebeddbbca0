#pragma once

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace opensandbox::egress::dns {

/// Numbers that nobody can guess, fetched from the kernel in stretches.
class RandomSource {
  public:
    std::uint8_t byte() {
        if (next_ == pool_.size()) refill();
        return pool_[next_++];
    }
    std::uint16_t word() {
        const auto high = static_cast<std::uint16_t>(byte() << 8);
        return static_cast<std::uint16_t>(high | byte());
    }

  private:
    void refill() {
        // Never fails for so few bytes, but a signal may interrupt it early in the boot.
        while (::getrandom(pool_.data(), pool_.size(), 0) != static_cast<ssize_t>(pool_.size())) {
        }
        next_ = 0;
    }

    std::array<std::uint8_t, 256> pool_{};
    std::size_t next_ = pool_.size();
};

}  // namespace opensandbox::egress::dns
