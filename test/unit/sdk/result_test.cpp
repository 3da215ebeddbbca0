#include "opensandbox/error.hpp"

#include <catch2/catch.hpp>

#include <memory>

using namespace opensandbox::sdk;

TEST_CASE("a result holds a value or an error, and value() throws the error") {
    Result<int> value = 7;
    REQUIRE(value);
    CHECK(*value == 7);
    CHECK(value.value() == 7);
    Result<int> failed = Error(ErrorCode::not_found, "gone");
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message() == "gone");
    try {
        static_cast<void>(failed.value());
        FAIL("no exception");
    } catch (const Failure& failure) {
        CHECK(failure.error().code() == ErrorCode::not_found);
        CHECK(std::string(failure.what()) == "gone");
    }
    Status good;
    CHECK(good);
    CHECK_NOTHROW(good.value());
    Status bad = Error(ErrorCode::io, "x");
    CHECK_THROWS_AS(bad.value(), Failure);
}

TEST_CASE("a result may hold what can only be moved") {
    Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
    std::unique_ptr<int> taken = std::move(result).value();
    CHECK(*taken == 3);
}

TEST_CASE("context goes before the message and keeps the rest") {
    Error error(ErrorCode::conflict, 409, "C::X", "busy", "r1");
    Error outer = error.within("image a");
    CHECK(outer.message() == "image a: busy");
    CHECK(outer.status() == 409);
    CHECK(outer.wire_code() == "C::X");
    CHECK(outer.request_id() == "r1");
    CHECK(to_string(outer.code()) == "conflict");
}
