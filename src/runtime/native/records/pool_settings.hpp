#pragma once

#include <cstdint>

namespace opensandbox::runtime::native {

/// How many blanks are kept ready: `[native.pool]`, and for warm slots `[native.warm]`.
struct PoolSettings {
    std::uint32_t size = 8;           ///< always, 0..1000
    std::uint32_t max = 128;          ///< after bursts, size..1000
    std::uint32_t idle_seconds = 60;  ///< 1..86400; see slots/pool_demand.hpp
    friend bool operator==(const PoolSettings&, const PoolSettings&) = default;
};

}  // namespace opensandbox::runtime::native
