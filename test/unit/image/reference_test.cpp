#include "archives.hpp"

#include <catch2/catch.hpp>

#include <string>

using opensandbox::image::normalize_reference;

namespace {

const std::string digest = "sha256:" + std::string(64, 'a');

std::string normal(std::string_view text) {
    auto result = normalize_reference(text);
    return result ? *result : "refused: " + result.error().message();
}

}  // namespace

TEST_CASE("a reference without a tag means latest") {
    CHECK(normal("python") == "python:latest");
    CHECK(normal("python:3.12-slim") == "python:3.12-slim");
    CHECK(normal("library/python") == "library/python:latest");
}

TEST_CASE("a registry may have a port, upper case and an IPv6 address") {
    CHECK(normal("localhost:5000/a/b") == "localhost:5000/a/b:latest");
    CHECK(normal("Registry.Example.com/a:1") == "Registry.Example.com/a:1");
    CHECK(normal("[::1]:443/a:1") == "[::1]:443/a:1");
    CHECK(normal("registry.example.com:70000/a").starts_with("refused"));
    CHECK(normal("registry.example.com:/a").starts_with("refused"));
    CHECK(normal("-registry.example.com/a").starts_with("refused"));
    CHECK(normal("[::1/a").starts_with("refused"));
}

TEST_CASE("the parts of a name follow the OCI rules") {
    CHECK(normal("a.b/c_d/e__f/g---h:T") == "a.b/c_d/e__f/g---h:T");
    for (const char* bad : {"", "A", "a/B", "a//b", "/a", "a/", "a..b", "a___b", "a.-b", "-a", "a-",
                            "a b", "a:b:c", "a\nb", "a/../b", ".", "_"}) {
        INFO(bad);
        CHECK(normal(bad).starts_with("refused"));
    }
    CHECK(normal(std::string(255, 'a')) == std::string(255, 'a') + ":latest");
    CHECK(normal(std::string(256, 'a')).find("255") != std::string::npos);
}

TEST_CASE("a tag has at most 128 of its characters") {
    CHECK(normal("a:" + std::string(128, 'T')) == "a:" + std::string(128, 'T'));
    for (const std::string& bad : {std::string(129, 'T'), std::string(), std::string(".x"),
                                   std::string("-x"), std::string("x y"), std::string("x/y:")}) {
        INFO(bad);
        CHECK(normal("a:" + bad).starts_with("refused"));
    }
    CHECK(normal("a:" + std::string(129, 'T')).find("128") != std::string::npos);
}

TEST_CASE("a digest names one image and stands without a tag") {
    CHECK(normal("a@" + digest) == "a@" + digest);
    CHECK(normal("a:1@" + digest).starts_with("refused"));
    CHECK(normal("a@sha256:ABC").find("64 lower-case hex") != std::string::npos);
    CHECK(normal("a@sha512:" + std::string(128, 'a')).starts_with("refused"));
}

TEST_CASE("host is the built-in image and nothing else") {
    CHECK(normal("host") == "host");
    CHECK(normal("host:latest") == "host");
    CHECK(normal("host:1").find("built-in") != std::string::npos);
    CHECK(normal("host@" + digest).find("built-in") != std::string::npos);
    CHECK(normal("my/host") == "my/host:latest");
}

TEST_CASE("an error names the reference without control characters") {
    auto result = normalize_reference("a\x01\xff");
    REQUIRE_FALSE(result);
    CHECK(result.error().message().find("\\x01\\xff") != std::string::npos);
}
