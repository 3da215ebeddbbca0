#include "docker_fake_engine.hpp"
#include "support/tls_server.hpp"

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::runtime::docker;
using test::FakeEngine;
using test_support::Identity;
using test_support::issue;
using test_support::Loop;
using test_support::TlsServer;

namespace {

/// An engine behind TLS that serves only clients it knows, and a client's DOCKER_CERT_PATH.
struct Fixture {
    Fixture() {
        authority.write_certificate(directory.path / "ca.pem");
        client.write_certificate(directory.path / "cert.pem");
        client.write_key(directory.path / "key.pem");
        fake.on("GET /info", 200, R"({"OSType":"linux"})");
    }
    [[nodiscard]] EngineAddress address() const {
        EngineEnvironment environment;
        environment.docker_host = "tcp://127.0.0.1:" + std::to_string(server.port);
        environment.docker_tls_verify = "1";
        environment.docker_cert_path = directory.path;
        auto parsed = parse_engine_address(
            environment, [](const std::string& path) { return std::filesystem::exists(path); });
        REQUIRE(parsed);
        return *parsed;
    }

    test_support::ScratchDirectory directory;
    Identity authority = issue("authority", "", nullptr);
    Identity engine = issue("engine", "IP:127.0.0.1", &authority);
    Identity client = issue("client", "", &authority);
    Loop loop;
    FakeEngine fake{loop};
    TlsServer server{
        engine, test_support::forward_to([this] { return test_support::dial_unix(fake.path()); }),
        &authority};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "an engine behind TLS is reached with a client's certificate") {
    loop.run([&]() -> Awaitable<void> {
        Engine docker(loop.executor(), address());
        auto info = co_await docker.info();
        REQUIRE(info);
        CHECK(info->os_type == "linux");
        auto again = co_await docker.info();
        CHECK(again);
    });
    CHECK(fake.last().fields.get("Host") == "127.0.0.1:" + std::to_string(server.port));
}

TEST_CASE_METHOD(Fixture, "an engine that does not know the client, or is not known, is refused") {
    EngineAddress wrong = address();
    Identity stranger = issue("stranger", "", nullptr);
    std::string words;
    SECTION("no certificate of ours") {
        wrong.cert_file.clear();
        wrong.key_file.clear();
        words = "certificate required";
    }
    SECTION("another authority") {
        stranger.write_certificate(directory.path / "ca.pem");
        words = "certificate does not hold";
    }
    SECTION("a certificate that is none") {
        std::ofstream(directory.path / "cert.pem") << "nothing";
        words = "cert.pem";
    }
    loop.run([&]() -> Awaitable<void> {
        Engine docker(loop.executor(), wrong);
        auto info = co_await docker.info();
        REQUIRE_FALSE(info);
        std::string message = info.error().message();
        CAPTURE(message);
        CHECK((info.error().code() == ErrorCode::unavailable ||
               info.error().code() == ErrorCode::bad_gateway));
        CHECK(message.starts_with("the Docker engine at tcp://127.0.0.1:"));
        CHECK(message.find(words) != std::string::npos);
    });
    CHECK(fake.asked.empty());
}
