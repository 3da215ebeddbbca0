#include "server/request_rooms.hpp"

#include "server/config/config.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::server;

TEST_CASE("rooms: a place is taken as long as it is held, and each kind has its own") {
    RoomLimits limits;
    limits.control = limits.unauthorized = 1;
    RequestRooms rooms(limits);
    {
        auto stranger = rooms.enter(Traffic::unauthorized, "a");
        REQUIRE(stranger);
        CHECK_FALSE(rooms.enter(Traffic::unauthorized, "b"));
        auto moved = std::move(*stranger);
        CHECK_FALSE(rooms.enter(Traffic::unauthorized));
        CHECK(rooms.enter(Traffic::control));
        CHECK(rooms.enter(Traffic::proxied, "a"));
    }
    CHECK(rooms.enter(Traffic::unauthorized, "b"));
}

TEST_CASE("rooms: one sandbox gets its share of a kind") {
    RoomLimits limits;
    limits.per_sandbox = 1;
    RequestRooms rooms(limits);
    auto first = rooms.enter(Traffic::unauthorized, "a");
    REQUIRE(first);
    CHECK_FALSE(rooms.enter(Traffic::unauthorized, "a"));
    CHECK(rooms.enter(Traffic::unauthorized, "b"));
    auto keyed = rooms.enter(Traffic::proxied, "a");
    CHECK(keyed);
    CHECK_FALSE(rooms.enter(Traffic::proxied, "a"));
    first.reset();
    CHECK(rooms.enter(Traffic::unauthorized, "a"));
    // 0 is no limit.
    for (int i = 0; i < 3; ++i)
        CHECK(rooms.enter(Traffic::control));
}

TEST_CASE("rooms: what is not limited ends with the descriptors") {
    RoomLimits limits = room_limits(Config());
    limits.unauthorized = 0;
    limits.proxied = 1'000'000;
    limits.fit(256);
    CHECK(limits.unauthorized == 32);
    CHECK(limits.proxied == 64);
    limits.fit(16);
    CHECK(limits.unauthorized == 8);
}
