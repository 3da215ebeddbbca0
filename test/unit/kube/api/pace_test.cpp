#include "kube/api/back_off.hpp"
#include "kube/api/circuit.hpp"
#include "kube/api/rate_limit.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::kube;
using namespace std::chrono_literals;

TEST_CASE("a rate lets a burst begin at once and the rest one after the other") {
    RateLimit limit({10, 3});
    const auto now = RateLimit::Clock::time_point(1h);
    for (int i = 0; i < 3; ++i)
        CHECK(limit.take(now) == 0s);
    CHECK(limit.take(now) == 100ms);
    CHECK(limit.take(now) == 200ms);
    // What has waited is not waited for again.
    CHECK(limit.take(now + 300ms) == 0s);
    CHECK(limit.take(now + 300ms) == 100ms);
    // Never more at once than a burst.
    for (int i = 0; i < 3; ++i)
        CHECK(limit.take(now + 1h) == 0s);
    CHECK(limit.take(now + 1h) > 0s);
}

TEST_CASE("without a rate everything begins at once") {
    RateLimit limit({0, 0});
    for (int i = 0; i < 1000; ++i)
        CHECK(limit.take(RateLimit::Clock::time_point(1h)) == 0s);
}

TEST_CASE("pauses grow to their limit, and are not the same for all") {
    BackOff pauses({100ms, 1'000ms}, 7);
    auto limit = 100ms;
    for (int i = 0; i < 10; ++i) {
        const auto pause = pauses.next();
        CHECK(pause <= limit);
        CHECK(pause >= limit / 2);
        limit = std::min<std::chrono::milliseconds>(limit * 2, 1'000ms);
    }
    pauses.reset();
    CHECK(pauses.next() <= 100ms);
    CHECK(BackOff({1h, 1h}, 1).next() != BackOff({1h, 1h}, 2).next());
}

TEST_CASE("a server that does not answer is asked now and then only") {
    Circuit circuit;
    auto now = Circuit::Clock::time_point(1h);
    for (int i = 0; i < 3; ++i) {
        CHECK(circuit.allows(now));
        circuit.unanswered(now);
    }
    CHECK(circuit.open());
    CHECK_FALSE(circuit.allows(now));
    now += 1s;
    CHECK(circuit.allows(now));
    CHECK_FALSE(circuit.allows(now));
    circuit.answered();
    CHECK_FALSE(circuit.open());
    CHECK(circuit.allows(now));
}
