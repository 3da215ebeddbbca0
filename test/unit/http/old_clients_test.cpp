#include "http/access_path.hpp"
#include "http/sdk_agent.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("published clients are known by their User-Agent") {
    auto sdk = http::parse_sdk_agent("OpenSandbox-Kotlin-SDK/1.0.13 okhttp");
    REQUIRE(sdk.has_value());
    CHECK(sdk->language == "kotlin");
    CHECK(sdk->version == "1.0.13");
    CHECK(sdk->older_than(1, 1, 0));
    CHECK(sdk->older_than(1, 0, 14));
    CHECK_FALSE(sdk->older_than(1, 0, 13));
    CHECK(http::parse_sdk_agent("OpenSandbox-Go-SDK/1.1")->older_than(1, 1, 1));
    CHECK(http::parse_sdk_agent("OpenSandbox-Go-SDK/1.0-rc1")->older_than(1, 1, 0));
}

TEST_CASE("a version that cannot be read is not old") {
    for (const char* text : {"OpenSandbox-Go-SDK/", "OpenSandbox-Go-SDK/x", "OpenSandbox-Go-SDK/1",
                             "OpenSandbox-Go-SDK/99999999999.0"}) {
        INFO(text);
        auto sdk = http::parse_sdk_agent(text);
        REQUIRE(sdk.has_value());
        CHECK_FALSE(sdk->older_than(9, 9, 9));
    }
    for (const char* text : {"", "curl/8", "OpenSandbox-SDK/1.0", "OpenSandbox--SDK/1.0"}) {
        INFO(text);
        CHECK_FALSE(http::parse_sdk_agent(text));
    }
}

TEST_CASE("a token in the path is taken off its front") {
    struct Row {
        const char* target;
        const char* token;
        const char* rest;
    };
    const Row rows[] = {
        {"/.access/abc/ping", "abc", "/ping"},
        {"/.access/abc/a%2Fb?x=/1", "abc", "/a%2Fb?x=/1"},
        {"/.access/abc?x=1", "abc", "/?x=1"},
        {"/.access/abc", "abc", "/"},
        {"/.access//ping", "", "/.access//ping"},
        {"/.access", "", "/.access"},
        {"/ping/.access/abc", "", "/ping/.access/abc"},
    };
    for (const Row& row : rows) {
        INFO(row.target);
        std::string target = row.target;
        CHECK(http::take_access_path(target) == row.token);
        CHECK(target == row.rest);
    }
    std::string target = http::access_path("t-_9") + "/x";
    CHECK(http::take_access_path(target) == "t-_9");
    CHECK(target == "/x");
}

TEST_CASE("no token of a path is shown", "[http]") {
    struct Row {
        const char* path;
        const char* shown;
    };
    const Row rows[] = {
        {"/v1/sandboxes/x/proxy/44772/.access/abc/ping",
         "/v1/sandboxes/x/proxy/44772/.access/***/ping"},
        {"/.access/abc", "/.access/***"},
        {"/.access/abc/.access/def?x", "/.access/***/.access/***?x"},
        {"/.access//ping", "/.access//ping"},
        {"/ping", "/ping"},
        {"", ""},
    };
    for (const Row& row : rows) {
        INFO(row.path);
        CHECK(http::without_access_tokens(row.path) == row.shown);
    }
}
