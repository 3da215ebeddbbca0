#include "http/server.hpp"

#include <catch2/catch.hpp>

#include <opensandbox/blocking.hpp>
#include <opensandbox/sandbox.hpp>

using namespace opensandbox::sdk;

namespace {

/// Enough of a server for the quick start of sandbox.hpp.
opensandbox::Awaitable<void> serve(opensandbox::http::Exchange& exchange, std::uint16_t port) {
    using namespace opensandbox::http;
    const std::string path(exchange.request().path());
    Response response(200);
    if (path == "/v1/sandboxes") {
        response = json_response(202, R"({"id":"q"})");
    } else if (path == "/v1/sandboxes/q/endpoints/44772") {
        response =
            json_response(200, R"({"endpoint":"127.0.0.1:)" + std::to_string(port) + R"(/a"})");
    } else if (path == "/v1/sandboxes/q") {
        response = Response(204);
    } else if (path == "/a/command") {
        response = Response(200, "text/event-stream",
                            "{\"type\":\"init\",\"text\":\"i\",\"timestamp\":1}\n\n"
                            "{\"type\":\"stdout\",\"text\":\"hello\\n\",\"timestamp\":1}\n\n"
                            "{\"type\":\"execution_complete\",\"timestamp\":1}\n\n");
    }
    co_await exchange.respond(std::move(response));
}

}  // namespace

TEST_CASE("the quick start of the header works, without a coroutine in the program") {
    EventLoop loop;
    auto listener = opensandbox::net::listen_tcp(loop.context().get_executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    const std::uint16_t port = (*listener)->port();
    opensandbox::http::Server fake(
        loop.context().get_executor(),
        [port](opensandbox::http::Exchange& exchange) { return serve(exchange, port); });
    fake.serve(std::move(*listener));
    ConnectionConfig config;
    config.domain = "127.0.0.1:" + std::to_string(port);

    Connection server = loop.connect(config).value();
    Sandbox sandbox = loop.wait(Sandbox::create(server, CreateOptions("host"))).value();
    CommandRequest hello("echo hello from $(hostname)");
    Execution done = loop.wait(sandbox.commands().run(hello)).value();
    CHECK(done.output == "hello\n");
    CHECK(done.exit_code == 0);
    loop.wait(sandbox.kill()).value();

    CHECK_THROWS_AS(loop.wait(sandbox.files().info({"/x"})).value(), Failure);
}
