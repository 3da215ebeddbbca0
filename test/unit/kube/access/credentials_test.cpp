#include "kube/access/credentials.hpp"

#include "base/base64.hpp"
#include "unit/kube/access/desk.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;
using namespace std::chrono_literals;
using testing::Desk;
TEST_CASE("credentials that do not change are given as they are") {
    Desk desk;
    SECTION("a token") {
        desk.cluster.token = "t";
        desk.cluster.username = "me";
        CHECK(desk.authorization() == "Bearer t");
    }
    SECTION("a name and a password") {
        desk.cluster.username = "me";
        desk.cluster.password = "p:w";
        CHECK(desk.authorization() == "Basic " + to_base64("me:p:w"));
    }
    SECTION("none") {
        CHECK(desk.authorization().empty());
    }
    CHECK_FALSE(desk.credentials().refused());
}

TEST_CASE("only https:// is spoken to over TLS, by one client for all requests") {
    Desk desk;
    SECTION("https") {
        desk.cluster.tls.ca_file = "/ca.pem";
        auto access = desk.current();
        REQUIRE(access);
        REQUIRE(access->tls);
        CHECK(access->tls->settings().ca_file == "/ca.pem");
        CHECK(desk.current()->tls == access->tls);
    }
    SECTION("http") {
        desk.cluster.server = "http://127.0.0.1:8080";
        auto access = desk.current();
        REQUIRE(access);
        CHECK_FALSE(access->tls);
    }
}

TEST_CASE("a token in a file is read again when a minute has passed or it was refused") {
    Desk desk;
    desk.cluster.token_file = desk.scratch.path / "token";
    desk.cluster.token = "outdated";
    desk.write("token", "first\n");
    CHECK(desk.authorization() == "Bearer first");
    desk.write("token", "second");
    desk.time += 59s;
    CHECK(desk.authorization() == "Bearer first");
    desk.time += 1s;
    CHECK(desk.authorization() == "Bearer second");
    desk.write("token", "third");
    CHECK(desk.authorization() == "Bearer second");
    CHECK(desk.credentials().refused());
    CHECK(desk.authorization() == "Bearer third");
}

TEST_CASE("a token file that cannot be read again leaves the last token") {
    Desk desk;
    desk.cluster.token_file = desk.scratch.path / "token";
    desk.write("token", "first");
    CHECK(desk.authorization() == "Bearer first");
    desk.time += 1min;
    SECTION("gone") {
        std::filesystem::remove(desk.cluster.token_file);
    }
    SECTION("empty") {
        desk.write("token", "");
    }
    CHECK(desk.authorization() == "Bearer first");
    desk.write("token", "second");
    desk.time += 1min;
    CHECK(desk.authorization() == "Bearer second");
}

TEST_CASE("a token file that never could be read is an error that names it, until it can") {
    Desk desk;
    desk.cluster.token_file = desk.scratch.path / "token";
    SECTION("missing") {}
    SECTION("empty") {
        desk.write("token", " \n");
    }
    SECTION("no token") {
        desk.write("token", "two\nlines");
    }
    const std::string refusal = desk.refusal();
    CHECK(refusal.find(desk.cluster.token_file) != std::string::npos);
    CHECK(refusal.find("lines") == std::string::npos);
    desk.write("token", "good");
    CHECK(desk.authorization() == "Bearer good");
}
