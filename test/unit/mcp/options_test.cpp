#include "mcp/options.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::mcp;

namespace {

using Words = std::vector<std::string>;

std::optional<std::string> nothing(std::string_view) {
    return std::nullopt;
}

std::string problem_of(const Words& words) {
    auto read = parse_options(words, nothing);
    return read ? "" : read.error().message();
}

}  // namespace

TEST_CASE("the options of the MCP role are read") {
    const Words words{"--transport=streamable-http",
                      "--port",
                      "0",
                      "--session-idle=5",
                      "--allow-origin=https://a",
                      "--allow-origin",
                      "http://b",
                      "--server",
                      "s",
                      "--request-timeout-seconds=0.5",
                      "--no-use-server-proxy"};
    auto read = parse_options(words, [](std::string_view) { return "token"; });
    REQUIRE(read.has_value());
    CHECK(read->over_http);
    CHECK(read->port == 0);
    CHECK(read->auth_token == "token");
    CHECK(read->session_idle == std::chrono::seconds(5));
    CHECK(read->allowed_origins == Words{"https://a", "http://b"});
    CHECK(read->server.domain == "s");
    CHECK(read->server.request_timeout == std::chrono::milliseconds(500));
    CHECK(read->server.use_server_proxy == false);
    CHECK(parse_options(Words{"-h"}, nothing)->help);
}

TEST_CASE("wrong options of the MCP role are named, with what is accepted") {
    CHECK(problem_of({"--nope=1"}) == "unknown option: --nope");
    CHECK(problem_of({"word"}) == "unexpected argument: word");
    CHECK(problem_of({"--port"}) == "--port: a value is missing");
    CHECK(problem_of({"--port=x"}) == "--port: 'x' is not a whole number from 0 to 65535");
    CHECK(problem_of({"--transport", "sse"}) ==
          "--transport: 'sse' is not stdio or streamable-http");
    CHECK(problem_of({"--host="}) == "--host: '' is not a text of at least one character");
    CHECK(problem_of({"--protocol", "ftp"}) == "--protocol: 'ftp' is not http or https");
    CHECK(problem_of({"--request-timeout-seconds", "0"}).find("seconds above 0") !=
          std::string::npos);
}

TEST_CASE("the help of the MCP role has its options") {
    const std::string text = help();
    CHECK(text.starts_with("Usage: opensandbox mcp [OPTIONS]\n"));
    CHECK(text.find("\n  --port NUMBER             Port to listen on") != std::string::npos);
    CHECK(text.find("(env OPENSANDBOX_MCP_AUTH_TOKEN)") != std::string::npos);
    CHECK(text.find("\n  --server") == std::string::npos);
}
