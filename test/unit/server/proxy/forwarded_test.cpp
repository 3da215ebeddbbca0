#include "server/proxy/proxy_rules.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

std::vector<net::AddressBlock> blocks(std::initializer_list<const char*> texts) {
    std::vector<net::AddressBlock> made;
    for (const char* text : texts)
        made.push_back(net::AddressBlock::parse(text).value());
    return made;
}

/// "scheme client host" of a request that the proxies 127.0.0.1 and 10.0.0.0/8 are trusted with.
std::string seen(std::string_view peer, http::Fields fields) {
    fields.add("Host", "own:8080");
    auto from = origination_of(fields, peer, blocks({"127.0.0.1", "10.0.0.0/8", "fd00::/8"}));
    CHECK_FALSE(from.authorized);
    return from.scheme + " " + from.client + " " + from.host;
}

}  // namespace

TEST_CASE("whoever is no trusted proxy speaks for itself only") {
    http::Fields said{{"X-Forwarded-For", "192.0.2.9"},
                      {"X-Forwarded-Proto", "https"},
                      {"X-Forwarded-Host", "else"}};
    CHECK(seen("192.0.2.1", said) == "http 192.0.2.1 own:8080");
    CHECK(seen("127.0.0.2", said) == "http 127.0.0.2 own:8080");
    CHECK(seen("", said) == "http  own:8080");
    CHECK(origination_of(said, "127.0.0.1", {}).client == "127.0.0.1");
    CHECK(origination_of(said, "127.0.0.1", {}).scheme == "http");
}

TEST_CASE("a trusted proxy is believed") {
    CHECK(seen("127.0.0.1", {{"X-Forwarded-For", "192.0.2.9"},
                             {"X-Forwarded-Proto", "https"},
                             {"X-Forwarded-Host", "public"}}) == "https 192.0.2.9 public");
    CHECK(seen("::ffff:10.1.1.1", {{"x-forwarded-proto", "HTTPS"}}) ==
          "https ::ffff:10.1.1.1 own:8080");
    CHECK(seen("fd00::1", {{"X-Forwarded-For", "[2001:db8::1]:443"}}) ==
          "http 2001:db8::1 own:8080");
    CHECK(seen("127.0.0.1", {{"X-Forwarded-For", "192.0.2.9:5000"}}) == "http 192.0.2.9 own:8080");
    CHECK(seen("127.0.0.1", {}) == "http 127.0.0.1 own:8080");
}

TEST_CASE("what a client forged before the first trusted proxy does not count") {
    CHECK(seen("127.0.0.1", {{"X-Forwarded-For", "127.0.0.1, 192.0.2.9"}}) ==
          "http 192.0.2.9 own:8080");
    CHECK(seen("127.0.0.1", {{"X-Forwarded-For", "127.0.0.1"}, {"X-Forwarded-For", "192.0.2.9"}}) ==
          "http 192.0.2.9 own:8080");
    CHECK(seen("127.0.0.1", {{"X-Forwarded-For", "6.6.6.6, 192.0.2.9,10.2.2.2"}}) ==
          "http 192.0.2.9 own:8080");
    CHECK(seen("127.0.0.1", {{"X-Forwarded-Proto", "https, http"}}) == "http 127.0.0.1 own:8080");
    CHECK(seen("127.0.0.1", {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", "http"}}) ==
          "http 127.0.0.1 own:8080");
}

TEST_CASE("an entry that cannot be read ends the chain") {
    for (const char* entry :
         {"", " ", "unknown", "[", "[::1", "]", ":", "1.2.3", "a:1", "[]:1", "[::1]x"}) {
        INFO(entry);
        CHECK(seen("127.0.0.1", {{"X-Forwarded-For", std::string("192.0.2.9, ") + entry}}) ==
              "http 127.0.0.1 own:8080");
        CHECK(
            seen("127.0.0.1", {{"X-Forwarded-For", std::string("192.0.2.9,") + entry + ",10.1.1.1"},
                               {"X-Forwarded-Proto", entry},
                               {"X-Forwarded-Host", ""}}) == "http 10.1.1.1 own:8080");
    }
}
