#include "registry/location.hpp"

#include "registry/wire.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using registry::locate;
using registry::locate_registry;

namespace {

registry::Location located(const std::string& reference) {
    auto parsed = image::parse_reference(reference);
    REQUIRE(parsed);
    auto location = locate(*parsed);
    REQUIRE(location);
    return *location;
}

}  // namespace

TEST_CASE("a name without a registry is of docker.io and its library") {
    auto location = located("python:3.12");
    CHECK(location.registry == "docker.io");
    CHECK(location.host == "registry-1.docker.io");
    CHECK(location.port == 0);
    CHECK(location.repository == "library/python");
    CHECK(location.reference == "3.12");
    CHECK_FALSE(location.loopback);
    CHECK(located("me/tool").repository == "me/tool");
    CHECK(located("docker.io/python").repository == "library/python");
    CHECK(located("index.docker.io/me/tool").registry == "docker.io");
    CHECK(located("me/tool").reference == "latest");
}

TEST_CASE("a first part with a dot, a port or localhost is the registry") {
    auto location = located("registry.example:5000/a/b/c:1");
    CHECK(location.registry == "registry.example:5000");
    CHECK(location.host == "registry.example");
    CHECK(location.port == 5000);
    CHECK(location.repository == "a/b/c");
    CHECK(located("localhost/x").loopback);
    CHECK(located("127.0.0.1:5000/x").loopback);
    CHECK(located("[::1]:5000/x").host == "::1");
    CHECK(located("[::1]:5000/x").loopback);
    CHECK_FALSE(located("128.0.0.1:5000/x").loopback);
    CHECK_FALSE(located("127.0.0.1.example/x").loopback);
    std::string digest = "sha256:" + std::string(64, 'a');
    CHECK(located("registry.example/x@" + digest).reference == digest);
}

TEST_CASE("the built-in image is in no registry") {
    auto parsed = image::parse_reference("host");
    REQUIRE(parsed);
    CHECK_FALSE(locate(*parsed));
}

TEST_CASE("a registry is known under the names that others keep its login by") {
    CHECK(locate_registry("https://index.docker.io/v1/")->registry == "docker.io");
    CHECK(locate_registry("registry.example/v2/")->registry == "registry.example");
    for (const char* name : {"", "a b", "x:0", "x:70000", "x:", "a@b", "[]", "a?b"}) {
        CAPTURE(name);
        CHECK_FALSE(locate_registry(name));
    }
}

TEST_CASE("an address that a registry names is taken by its rules") {
    test_support::Loop loop;
    registry::RegistryOptions options;
    options.plain_http_hosts = {"plain.example:5000"};
    registry::Wire wire(loop.executor(), options);
    registry::Target from;
    from.origin = wire.origin(*locate_registry("registry.example"), true);
    from.target = "/v2/";

    auto same = wire.resolve("/v2/x?y=1", from);
    REQUIRE(same);
    CHECK(same->same_origin(from));
    CHECK(same->target == "/v2/x?y=1");

    auto other = wire.resolve("https://blobs.example:8443/b?signature=a/b#c", from);
    REQUIRE(other);
    CHECK_FALSE(other->same_origin(from));
    CHECK(other->origin.host == "blobs.example");
    CHECK(other->origin.port == 8443);
    CHECK(other->origin.tls);
    CHECK(other->target == "/b?signature=a/b");

    CHECK_FALSE(wire.resolve("http://blobs.example/b", from));
    CHECK(wire.resolve("http://plain.example:5000/b", from));
    CHECK(wire.resolve("http://127.0.0.1/b", from));
    // A registry behind a proxy that ends TLS.
    CHECK(wire.resolve("http://registry.example/b", from)->origin.tls);
    for (const char* url : {"", "x", "//blobs.example/b", "ftp://blobs.example", "https://a@b/",
                            "/v2/x y", "/v2/x\r\nX-Injected: y", "https://blobs.example/b\x7f"}) {
        CAPTURE(url);
        CHECK_FALSE(wire.resolve(url, from));
    }
}
