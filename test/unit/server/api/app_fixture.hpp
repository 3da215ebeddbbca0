#pragma once

#include "json/document.hpp"
#include "server/api/app.hpp"
#include "support/http_fixture.hpp"
#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <functional>
#include <memory>
#include <string>

namespace opensandbox::test_support {

/// What came back: status, fields and body.
struct Answer {
    Answer() = default;
    int status = 0;
    http::Fields fields;
    std::string body;

    [[nodiscard]] std::string field(std::string_view name) const {
        return std::string(fields.get(name).value_or(""));
    }
    [[nodiscard]] std::string code() const {
        auto parsed = json::parse(body);
        if (!parsed || !parsed->is_object()) return "not JSON: " + body;
        const auto* member = json::find(parsed->get_object(), "code");
        return member ? std::string(member->get_string()) : "no code: " + body;
    }
};

/// The whole server but the runtime: real HTTP on loopback, real store, fake sandboxes.
struct AppFixture : LifecycleFixture {
    using Adjust = std::function<void(server::Services&)>;

    /// `adjust` changes what the routes work with before the server starts.
    explicit AppFixture(std::string key = "secret", const Adjust& adjust = nullptr,
                        const runtime::Capabilities& able = runtime::Capabilities())
        : api_key(std::move(key)) {
        runtime.able = able;
        start();
        auto opened = image::Store::open(scratch.path / "images");
        REQUIRE(opened.has_value());
        images = std::move(opened.value());
        auto services = std::make_unique<server::Services>(config, api_key, life, *images,
                                                           image_pool, loop.executor());
        services->public_host = "127.0.0.1";
        if (adjust) adjust(*services);
        rooms = &services->rooms;
        http::ServerOptions options;
        options.tells_authorized = true;
        web = std::make_unique<http::test::TestServer>(
            loop, server::App::handler(std::make_shared<server::App>(std::move(services))),
            options);
        client = std::make_unique<http::Client>(loop.executor());
    }
    ~AppFixture() { image_pool.join(); }

    /// Sends one request with the key (unless `fields` bring their own) and reads the answer.
    Answer send(const std::string& method, const std::string& target, std::string body = {},
                http::Fields fields = {}) {
        if (!fields.has("OPEN-SANDBOX-API-KEY") && !fields.has("X-No-Key")) {
            fields.add("OPEN-SANDBOX-API-KEY", api_key);
        }
        fields.erase("X-No-Key");
        Answer answer;
        loop.run([&]() -> Awaitable<void> {
            http::ClientRequest wanted(method, target, fields);
            wanted.content = body;
            http::Origin origin("127.0.0.1", web->port);
            auto response = co_await client->send(origin, std::move(wanted));
            REQUIRE(response.has_value());
            answer.status = (*response)->head().status;
            answer.fields = (*response)->head().fields;
            auto text = co_await http::read_all((*response)->body(), 64 << 20);
            REQUIRE(text.has_value());
            answer.body = std::move(text.value());
        });
        return answer;
    }
    Answer get(const std::string& target) { return send("GET", target); }

    /// Creates a sandbox over HTTP and returns its id.
    std::string make(const std::string& more = "") {
        auto answer = send("POST", "/v1/sandboxes",
                           R"({"image":{"uri":"host"},"entrypoint":["sleep","1"],"timeout":600,)"
                           R"("resourceLimits":{})" +
                               more + "}");
        INFO(answer.body);
        REQUIRE(answer.status == 202);
        return std::string(json::parse(answer.body)->at("id").as_string());
    }

    std::string api_key;
    server::Config config;
    asio::thread_pool image_pool{2};
    std::unique_ptr<image::Store> images;
    server::RequestRooms* rooms = nullptr;  ///< of the server
    std::unique_ptr<http::test::TestServer> web;
    std::unique_ptr<http::Client> client;
};

}  // namespace opensandbox::test_support
