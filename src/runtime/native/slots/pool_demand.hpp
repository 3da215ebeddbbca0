#pragma once

#include "runtime/native/records/pool_settings.hpp"

#include <chrono>
#include <cstdint>

namespace opensandbox::runtime::native {

/// Makes the number of blanks follow demand: it grows at once to what a burst would have needed;
/// for every `idle_seconds` that needed less, half of the surplus goes. Pure.
class PoolDemand {
  public:
    using Time = std::chrono::steady_clock::time_point;

    explicit PoolDemand(PoolSettings settings = {0, 0, 60}) { configure(settings); }
    /// Other settings from now on; what was learned stays as far as they allow it.
    void configure(PoolSettings settings);
    /// Not more than this, whatever is wanted: addresses and memory have an end.
    void limit(std::uint32_t ceiling) { ceiling_ = ceiling; }

    /// Somebody asks for a blank: `ready` are there, and `waiting` wait for one, this one included.
    void on_take(Time now, std::uint64_t ready, std::uint64_t waiting);
    /// Lets time pass.
    void tend(Time now);
    [[nodiscard]] std::uint32_t idle_seconds() const { return settings_.idle_seconds; }
    /// How many to keep ready.
    [[nodiscard]] std::uint32_t target() const;

  private:
    PoolSettings settings_;
    std::uint32_t target_ = 0;
    std::uint32_t ceiling_ = 1000;
    std::uint64_t full_ = 0;  ///< ready when the present burst began
    std::uint64_t peak_ = 0;  ///< needed at once in this period
    Time last_take_{};
    Time period_start_{};
};

}  // namespace opensandbox::runtime::native
