#include "runtime/native/slots/pool_demand.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::runtime::native;
using namespace std::chrono_literals;

namespace {

constexpr PoolDemand::Time kStart{1h};

/// So many ask within the same millisecond; nothing is made meanwhile.
void burst(PoolDemand& demand, PoolDemand::Time now, std::uint64_t ready, std::uint64_t count) {
    std::uint64_t waiting = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        ++waiting;
        demand.on_take(now, ready, waiting);
        if (ready > 0) {
            --ready;
            --waiting;
        }
    }
}

}  // namespace

TEST_CASE("a pool without demand has its size", "[runtime][pool]") {
    PoolDemand demand({8, 64, 60});
    CHECK(demand.target() == 8);
    demand.tend(kStart + 24h);
    CHECK(demand.target() == 8);
}

TEST_CASE("a burst that the pool bears does not change it", "[runtime][pool]") {
    PoolDemand demand({8, 64, 60});
    burst(demand, kStart, 8, 8);
    CHECK(demand.target() == 8);
    burst(demand, kStart + 1s, 8, 3);
    CHECK(demand.target() == 8);
}

TEST_CASE("a burst beyond the pool raises it at once to what was needed", "[runtime][pool]") {
    PoolDemand demand({20, 200, 60});
    burst(demand, kStart, 20, 100);
    CHECK(demand.target() == 100);
    burst(demand, kStart + 10s, 100, 100);
    CHECK(demand.target() == 100);
}

TEST_CASE("a pool never passes its max, nor what the host has room for", "[runtime][pool]") {
    PoolDemand demand({20, 64, 60});
    burst(demand, kStart, 20, 100);
    CHECK(demand.target() == 64);
    demand.limit(30);
    CHECK(demand.target() == 30);
    demand.limit(5);
    CHECK(demand.target() == 5);
    demand.limit(1000);
    CHECK(demand.target() == 64);
}

TEST_CASE("one request after another that a refill keeps up with raises nothing",
          "[runtime][pool]") {
    PoolDemand demand({8, 64, 60});
    for (int i = 0; i < 1000; ++i)
        demand.on_take(kStart + i * 5ms, i % 2 == 0 ? 8 : 7, 1);
    CHECK(demand.target() == 8);
}

TEST_CASE("a steady stream that a refill does not keep up with raises the pool by what is short",
          "[runtime][pool]") {
    PoolDemand demand({2, 64, 60});
    demand.on_take(kStart, 2, 1);
    demand.on_take(kStart + 5ms, 1, 1);
    for (int i = 2; i < 1000; ++i)
        demand.on_take(kStart + i * 5ms, 0, 1);
    CHECK(demand.target() == 3);
}

TEST_CASE("quiet shrinks the pool slowly back to its size", "[runtime][pool]") {
    PoolDemand demand({8, 64, 60});
    burst(demand, kStart, 8, 64);
    REQUIRE(demand.target() == 64);
    demand.tend(kStart + 59s);
    CHECK(demand.target() == 64);
    // In the first period there was the burst itself.
    demand.tend(kStart + 60s);
    CHECK(demand.target() == 64);
    demand.tend(kStart + 120s);
    CHECK(demand.target() == 36);
    demand.tend(kStart + 121s);
    CHECK(demand.target() == 36);
    demand.tend(kStart + 180s);
    CHECK(demand.target() == 22);
    for (int i = 4; i < 12; ++i)
        demand.tend(kStart + i * 60s);
    CHECK(demand.target() == 8);
}

TEST_CASE("smaller bursts keep as much of a pool as they need", "[runtime][pool]") {
    PoolDemand demand({8, 64, 60});
    burst(demand, kStart, 8, 64);
    for (int i = 1; i < 20; ++i) {
        burst(demand, kStart + i * 60s - 1s, demand.target(), 30);
        demand.tend(kStart + i * 60s);
    }
    CHECK(demand.target() == 30);
}

TEST_CASE("other settings take hold at once", "[runtime][pool]") {
    PoolDemand demand({8, 64, 60});
    burst(demand, kStart, 8, 50);
    REQUIRE(demand.target() == 50);
    demand.configure({4, 16, 60});
    CHECK(demand.target() == 16);
    demand.configure({0, 0, 60});
    CHECK(demand.target() == 0);
    // What is smaller than its size is no max.
    demand.configure({12, 3, 60});
    CHECK(demand.target() == 12);
}
