#include "http/url.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("http URLs are taken apart") {
    auto url = http::parse_url("http://127.0.0.1:4318/v1/metrics");
    REQUIRE(url.has_value());
    CHECK(url->origin.host == "127.0.0.1");
    CHECK(url->origin.port == 4318);
    CHECK(url->path == "/v1/metrics");
    url = http::parse_url("http://collector");
    REQUIRE(url.has_value());
    CHECK(url->origin.port == 80);
    CHECK(url->path.empty());
    url = http::parse_url("http://[::1]:8888/");
    REQUIRE(url.has_value());
    CHECK(url->origin.host == "::1");
    CHECK(url->origin.port == 8888);
    CHECK(http::parse_url("http://[::1]")->origin.host == "::1");
    CHECK(url->origin.tls == nullptr);
}

TEST_CASE("https URLs are TLS on port 443") {
    auto url = http::parse_url("https://collector/v1");
    REQUIRE(url.has_value());
    CHECK(url->origin.port == 443);
    CHECK(url->path == "/v1");
    REQUIRE(url->origin.tls != nullptr);
    CHECK(url->origin.tls->settings().verify);
    CHECK(http::parse_url("https://h:1")->origin.port == 1);
}

TEST_CASE("URLs that cannot be used are refused with the reason") {
    for (const char* text :
         {"", "h", "ftp://h", "http://", "http://:1", "http://h:", "http://h:0", "http://h:65536",
          "http://h:1x", "http://u@h", "http://h/?q", "http://h/#f", "http://h /", "https://",
          "https:/h", "http://h/\r\nX: y"}) {
        INFO(text);
        auto url = http::parse_url(text);
        REQUIRE(url.has_error());
        CHECK(url.error().code() == ErrorCode::invalid_argument);
    }
}
