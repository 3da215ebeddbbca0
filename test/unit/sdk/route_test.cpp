#include "sdk/route.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::sdk;

TEST_CASE("addresses are split into host, port and path") {
    struct Case {
        const char* text;
        const char* host;
        int port;
        const char* prefix;
        const char* field;
    };
    for (const Case& c :
         {Case{"localhost", "localhost", 80, "", "localhost"},
          Case{"127.0.0.1:8080", "127.0.0.1", 8080, "", "127.0.0.1:8080"},
          Case{"[::1]:8080", "::1", 8080, "", "[::1]:8080"}, Case{"[::1]", "::1", 80, "", "[::1]"},
          Case{"http://h.example:1/", "h.example", 1, "", "h.example:1"},
          Case{"h:81/v1/sandboxes/x/proxy/44772", "h", 81, "/v1/sandboxes/x/proxy/44772", "h:81"},
          Case{"h/a%20b//", "h", 80, "/a%20b", "h"}}) {
        auto route = parse_route(c.text, "http");
        CAPTURE(c.text);
        REQUIRE(route.has_value());
        CHECK(route->origin.host == c.host);
        CHECK(route->origin.port == c.port);
        CHECK(route->prefix == c.prefix);
        CHECK(route->host == c.field);
    }
}

TEST_CASE("what is no address is refused with itself and the accepted forms") {
    for (const char* text :
         {"", ":80", "h:0", "h:65536", "h:x", "h:", "h:80x", "[::1", "[::1]x", "a b", "h/a b",
          "h/a?b", "h/a\r\nX: y", "h\r\n", "ftp://h", "https://h"}) {
        auto route = parse_route(text, "http");
        CAPTURE(text);
        REQUIRE(route.has_error());
        CHECK(route.error().code() == ErrorCode::invalid_argument);
        CHECK(route.error().message().find("'" + std::string(text) + "'") != std::string::npos);
        CHECK(route.error().message().find("HOST:PORT") != std::string::npos);
    }
}

TEST_CASE("https has a port of its own") {
    auto route = parse_route("h", "https");
    REQUIRE(route);
    CHECK(route->origin.port == 443);
    CHECK(parse_route("https://h/p", "https")->origin.port == 443);
    CHECK(parse_route("h:8443", "https")->origin.port == 8443);
    CHECK(parse_route("http://h", "https").error().message().find("scheme") != std::string::npos);
}

TEST_CASE("queries encode both sides") {
    CHECK(encode_query({}).empty());
    CHECK(encode_query({{"path", "/a b&c"}, {"path", "ü"}}) == "path=%2Fa%20b%26c&path=%C3%BC");
}
