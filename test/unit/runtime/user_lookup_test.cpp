#include "runtime/native/inside/user_lookup.hpp"

#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

constexpr auto kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n"
    "app:x:1000:1001:App:/home/app:/bin/sh\n"
    "nohome:x:1002:1002::::\n"
    "huge:x:70000:1:::/\n"
    "broken\n";
constexpr auto kGroup = "root:x:0:\nstaff:x:50:app\n";

}  // namespace

TEST_CASE("the user of an image is found by name or by number", "[runtime][user]") {
    auto user = resolve_user("", kPasswd, kGroup);
    REQUIRE(succeeded(user));
    CHECK(user->uid == 0);
    CHECK(user->home == "/root");
    user = resolve_user("app", kPasswd, kGroup);
    REQUIRE(succeeded(user));
    CHECK(user->uid == 1000);
    CHECK(user->gid == 1001);
    CHECK(user->home == "/home/app");
    user = resolve_user("1000", kPasswd, kGroup);
    REQUIRE(succeeded(user));
    CHECK(user->gid == 1001);
    user = resolve_user("app:staff", kPasswd, kGroup);
    REQUIRE(succeeded(user));
    CHECK(user->gid == 50);
    user = resolve_user("4321:77", kPasswd, kGroup);
    REQUIRE(succeeded(user));
    CHECK(user->uid == 4321);
    CHECK(user->gid == 77);
    CHECK(user->home == "/");
    user = resolve_user("nohome", kPasswd, kGroup);
    REQUIRE(succeeded(user));
    CHECK(user->home == "/");
}

TEST_CASE("a user that the image does not have is named in the error", "[runtime][user]") {
    auto user = resolve_user("ghost", kPasswd, kGroup);
    REQUIRE_FALSE(succeeded(user));
    CHECK(user.error().code() == ErrorCode::not_found);
    CHECK(user.error().message().find("ghost") != std::string::npos);
    user = resolve_user("app:ghosts", kPasswd, kGroup);
    REQUIRE_FALSE(succeeded(user));
    CHECK(user.error().message().find("ghosts") != std::string::npos);
}

TEST_CASE("ids outside of the sandbox's range are refused", "[runtime][user]") {
    CHECK_FALSE(succeeded(resolve_user("65536", kPasswd, kGroup)));
    CHECK_FALSE(succeeded(resolve_user("4294967295", kPasswd, kGroup)));
    CHECK_FALSE(succeeded(resolve_user("99999999999999999999999", kPasswd, kGroup)));
    CHECK_FALSE(succeeded(resolve_user("0:65536", kPasswd, kGroup)));
    CHECK_FALSE(succeeded(resolve_user("huge", kPasswd, kGroup)));
}
