#include "interception_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

TEST_CASE("HTTP/2 without TLS is told apart and judged", "[egress]") {
    World world;
    std::uint16_t port = 0;
    UniqueFd listener = listen_loopback(port);
    world.start(port);
    PlainClient client(world.port);
    const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    // SETTINGS, and HEADERS of one request: GET, http, "/", and a literal :authority.
    const std::string settings("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 9);
    const std::string block =
        "\x82\x86\x84\x41\x10"
        "evil.example.com";
    const std::string headers = std::string("\x00\x00", 2) + static_cast<char>(block.size()) +
                                std::string("\x01\x05\x00\x00\x00\x01", 6) + block;
    REQUIRE(client.say(preface.substr(0, 2)));
    REQUIRE(client.say(preface.substr(2) + settings + headers));
    CHECK(client.hear("(default deny)").find("egress policy denies evil.example.com") !=
          std::string::npos);
    CHECK(world.audit.has("request GET evil.example.com/ denied 403"));
}
