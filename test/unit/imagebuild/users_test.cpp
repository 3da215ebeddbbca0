#include "imagebuild/users.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::imagebuild;

namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/sh\nbroken\napp:x:1000:1001:App:/home/app:/bin/sh\n";
constexpr std::string_view kGroup = "root:x:0:\nstaff:x:50:app\n";

BuildUser user_of(std::string_view text) {
    auto user = resolve_user(text, kPasswd, kGroup);
    REQUIRE(user);
    return *user;
}

}  // namespace

TEST_CASE("a user is found by name or number, with its group and home") {
    for (const char* text : {"app", "1000"}) {
        const BuildUser user = user_of(text);
        CHECK(user.uid == 1000);
        CHECK(user.gid == 1001);
        CHECK(user.home == "/home/app");
    }
    CHECK(user_of("app:staff").gid == 50);
    CHECK(user_of("app:7").gid == 7);
    CHECK(user_of("").home == "/root");
}

TEST_CASE("a number needs no entry, a name does") {
    const BuildUser user = user_of("4242");
    CHECK(user.uid == 4242);
    CHECK(user.gid == 0);
    CHECK(user.home == "/");
    CHECK(!resolve_user("nobody", kPasswd, kGroup));
    CHECK(!resolve_user("app:nogroup", kPasswd, kGroup));
    CHECK(resolve_user("", "", "")->uid == 0);
}
