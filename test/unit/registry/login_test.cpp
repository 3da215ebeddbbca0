#include "fake_registry.hpp"
#include "registry/credential_file.hpp"

using namespace opensandbox;
using namespace opensandbox::registry::test;

namespace {

Awaitable<bool> refuse(http::Exchange& exchange, std::string challenge) {
    http::Response response(401);
    response.head.fields.set("WWW-Authenticate", std::move(challenge));
    response.body = R"({"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]})";
    co_await exchange.respond(std::move(response));
    co_return true;
}

}  // namespace

TEST_CASE("a password opens a registry with basic authentication") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {"x"});
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        if (x.request().fields.get("Authorization") == "Basic bWU6c2VjcmV0") co_return false;
        co_return co_await refuse(x, "Basic realm=\"Registry\"");
    };
    loop.run([&]() -> Awaitable<void> {
        auto none = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        REQUIRE_FALSE(none);
        CHECK(none.error().code() == ErrorCode::unauthenticated);
        CHECK_THAT(none.error().message(), Catch::Contains("asks for a user and a password"));

        model::RegistryLogin wrong("me", "guessed");
        auto refused = co_await puller.registries->pull(fake.name("app:1"), wrong);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::unauthenticated);
        CHECK_THAT(refused.error().message(), Catch::Contains("do not open it"));
        CHECK_THAT(refused.error().message(), !Catch::Contains("guessed"));

        model::RegistryLogin right("me", "secret");
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), right);
        CHECK(pulled);
        std::string registry = "127.0.0.1:" + std::to_string(fake.port());
        auto checked = co_await registry::check_login(puller.options, registry, right);
        CHECK(checked);
        checked = co_await registry::check_login(puller.options, registry, wrong);
        CHECK_FALSE(checked);
    });
}

TEST_CASE("the stored login is used when the request has none") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {"x"});
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        if (x.request().fields.get("Authorization") == "Basic bWU6c2VjcmV0") co_return false;
        co_return co_await refuse(x, "Basic realm=\"Registry\"");
    };
    registry::CredentialFile file(puller.options.credentials);
    REQUIRE(
        file.put("127.0.0.1:" + std::to_string(fake.port()), registry::Credential("me", "secret")));
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        CHECK(pulled);
    });
}

TEST_CASE("a token is fetched for the scope, with the login, and kept") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {"x", "y"});
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        if (x.request().path() == "/token") {
            http::Query query(x.request().query());
            bool right = x.request().fields.get("Authorization") == "Basic bWU6c2VjcmV0" &&
                         query.get("service") == "the registry" &&
                         query.get("scope") == "repository:team/app:pull";
            auto response = right ? http::json_response(200, R"({"token":"T1","expires_in":300})")
                                  : http::json_response(401, "{}");
            co_await x.respond(std::move(response));
            co_return true;
        }
        if (x.request().fields.get("Authorization") == "Bearer T1") co_return false;
        std::string realm = "http://127.0.0.1:" + std::to_string(fake.port()) + "/token";
        co_return co_await refuse(x, "Bearer realm=\"" + realm + "\",service=\"the registry\"");
    };
    loop.run([&]() -> Awaitable<void> {
        model::RegistryLogin right("me", "secret");
        auto pulled = co_await puller.registries->pull(fake.name("team/app:1"), right);
        CHECK(pulled);
        model::RegistryLogin wrong("me", "guessed");
        auto refused = co_await puller.registries->pull(fake.name("team/app:1"), wrong);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::unauthenticated);
        CHECK_THAT(refused.error().message(), !Catch::Contains("guessed"));
    });
    CHECK(fake.count("GET", "/token") == 2);
}

TEST_CASE("a redirect to another host does not take the login along") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {noise(20'000)});
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        std::string target = x.request().target;
        if (target.starts_with("/elsewhere")) {
            CHECK_FALSE(x.request().fields.has("Authorization"));
            x.request().target = target.substr(10, target.find('?') - 10);
            co_return false;
        }
        if (x.request().fields.get("Authorization") != "Basic bWU6c2VjcmV0") {
            co_return co_await refuse(x, "Basic realm=\"Registry\"");
        }
        if (target.find("/blobs/") == std::string::npos) co_return false;
        // The same machine under another name.
        http::Response response(307);
        response.head.fields.set("Location", "http://localhost:" + std::to_string(fake.port()) +
                                                 "/elsewhere" + target + "?signed=yes");
        co_await x.respond(std::move(response));
        co_return true;
    };
    loop.run([&]() -> Awaitable<void> {
        model::RegistryLogin login("me", "secret");
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), login);
        CHECK(pulled);
    });
    CHECK(fake.count("GET", "/elsewhere") == 2);
}

TEST_CASE("an identity token is exchanged for one of the scope, and an old one renewed") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {"x"});
    puller.options.docker_config = puller.scratch.path / "config.json";
    std::ofstream(puller.options.docker_config)
        << R"({"auths":{"127.0.0.1:)" << fake.port() << R"(":{"identitytoken":"I=1"}}})";
    puller.make(loop);
    int issued = 0;
    std::string form;
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        if (x.request().path() == "/token") {
            auto body = co_await http::read_all(x.body(), 10'000);
            form = x.request().method + " " + *body;
            std::string answer = R"({"access_token":"T)" + std::to_string(++issued) + "\"}";
            auto response = http::json_response(200, std::move(answer));
            co_await x.respond(std::move(response));
            co_return true;
        }
        // Only the second token holds to the end.
        auto given = x.request().fields.get("Authorization");
        bool blob = x.request().target.find("/blobs/") != std::string::npos;
        if (given == "Bearer T2" || (given == "Bearer T1" && !blob)) co_return false;
        std::string realm = "http://127.0.0.1:" + std::to_string(fake.port()) + "/token";
        co_return co_await refuse(x, "Bearer realm=\"" + realm + "\",service=\"s\"");
    };
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        CHECK(pulled);
    });
    CHECK(issued == 2);
    CHECK(form ==
          "POST grant_type=refresh_token&client_id=opensandbox&service=s&scope=repository"
          "%3Aapp%3Apull&refresh_token=I%3D1");
}
