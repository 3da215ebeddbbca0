#include "egress/intercept/core/request_guard.hpp"
#include "hello_bytes.hpp"
#include "http2_peer.hpp"
#include "interception_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

std::string pem_of(const Identity& identity) {
    std::unique_ptr<BIO, OpensslDeleter<BIO_free>> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), identity.certificate.get());
    char* data = nullptr;
    long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

}  // namespace

TEST_CASE("a name on the pass-through list reaches the server itself", "[egress]") {
    World world;
    world.gate.names["api.example.com"] = Action::pass_through;
    Identity identity = world.origin();
    TlsServer origin(identity, answer_http([](const std::string&) { return ok("direct"); }),
                     nullptr, speaking(wire_list({"odd"})));
    world.start(origin.port);
    SecureClient client(world.port, pem_of(world.origin_authority), "api.example.com", {"odd"});
    REQUIRE(client.connect());
    CHECK(client.protocol() == "odd");
    CHECK(X509_cmp(client.certificate().get(), identity.certificate.get()) == 0);
    REQUIRE(client.say(get("anything.at.all")));
    CHECK(client.hear("direct").find("200 OK") != std::string::npos);
    CHECK(world.audit.has("connection api.example.com passed"));
}

TEST_CASE("what is passed through keeps its bytes and its ends", "[egress]") {
    World world;
    world.gate.names["api.example.com"] = Action::pass_through;
    std::promise<std::string> seen;
    TlsServer origin(world.origin(), [&](SSL* session) {
        std::string big = hear_bytes(session, 5'000'000);
        say(session, big);
        SSL_shutdown(session);
        seen.set_value(big);
    });
    world.start(origin.port);
    SecureClient client(world.port, pem_of(world.origin_authority), "api.example.com");
    REQUIRE(client.connect());
    std::string big(5'000'000, 'z');
    REQUIRE(client.say(big));
    CHECK(client.hear_all() == big);
    CHECK(client.ended_in_order);
    CHECK(seen.get_future().get() == big);
}

TEST_CASE("a connection without a name is judged by its address", "[egress]") {
    World world;
    TlsServer origin(world.origin("IP:127.0.0.1"),
                     answer_http([](const std::string&) { return ok("address"); }));
    SECTION("denied") {
        world.start(origin.port);
        auto client = world.client("");
        CHECK_FALSE(client.connect());
        CHECK(client.failure.find("access denied") != std::string::npos);
    }
    SECTION("allowed") {
        world.gate.addresses = Action::allow;
        world.start(origin.port);
        auto client = world.client("");
        REQUIRE(client.connect());
        CHECK(X509_check_ip_asc(client.certificate().get(), "127.0.0.1", 0) == 1);
        REQUIRE(client.say(get("127.0.0.1:" + std::to_string(origin.port))));
        CHECK(client.hear("address").find("200 OK") != std::string::npos);
        client.hear("never-mind");
        auto named = world.client("");
        REQUIRE(named.connect());
        REQUIRE(named.say(get("api.example.com")));
        CHECK(named.hear("\r\n").find(" 421 ") != std::string::npos);
    }
}

TEST_CASE("a name that is none is refused", "[egress]") {
    World world;
    world.start(1);
    for (std::string name : {"127.0.0.1", "*.example.com", "a..b"}) {
        auto client = world.client(name);
        INFO(name);
        CHECK_FALSE(client.connect());
    }
    PlainClient garbage(world.port);
    REQUIRE(garbage.say(std::string("\x16\x03\x01\x00\x05hello", 10)));
    std::string answer = garbage.hear_all();
    CHECK(answer == std::string("\x15\x03\x03\x00\x02\x02\x32", 7));
}

TEST_CASE("a policy that throws denies", "[egress]") {
    class Throwing final : public InterceptGate {
      public:
        TargetVerdict judge_name(ClientId, std::string_view, std::uint16_t) override {
            throw std::runtime_error("broken");
        }
        TargetVerdict judge_address(ClientId, const Endpoint&) override {
            throw std::runtime_error("broken");
        }
        bool leads_to(ClientId, std::string_view, const Endpoint&) override { return true; }
    };
    Throwing gate;
    RequestRules rules(gate, nullptr, nullptr, false);
    Site site;
    site.target = Endpoint(asio::ip::address_v4::loopback(), 80);
    RequestGuard guard(rules, site);
    std::string target = "/";
    http::Fields fields;
    GuardedRequest request("GET", "api.example.com", target, fields);
    auto treatment = guard.admit(request);
    REQUIRE(treatment.refusal);
    CHECK(treatment.refusal->status == 502);
}

TEST_CASE("a server may ask for a certificate that nobody has", "[egress]") {
    World world;
    Identity client_authority = issue("clients", "", nullptr);
    Identity identity = world.origin();
    auto script = answer_http([](const std::string&) { return ok("never"); });
    SECTION("it is told that there is none") {
        TlsServer origin(identity, script, &client_authority);
        world.start(origin.port);
        auto client = world.client();
        REQUIRE(client.connect());
        client.say(get());
        CHECK(client.hear_all().find("HTTP/1.1 502 ") == 0);
    }
    SECTION("one that only would like it is served") {
        TlsServer origin(
            identity, answer_http([](const std::string&) { return ok("fine"); }), nullptr,
            [](SSL_CTX* context) { SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr); });
        world.start(origin.port);
        auto client = world.client();
        REQUIRE(client.connect());
        REQUIRE(client.say(get()));
        CHECK(client.hear("fine").find("200 OK") != std::string::npos);
    }
    SECTION("the connection is refused") {
        world.settings.upstream.on_certificate_request = CertificateRequest::refuse;
        TlsServer origin(identity, script, &client_authority);
        world.start(origin.port);
        auto client = world.client();
        CHECK_FALSE(client.connect());
        CHECK(world.audit.has("asks for a client's certificate"));
    }
    SECTION("client and server are left to each other") {
        world.settings.upstream.on_certificate_request = CertificateRequest::pass_through;
        TlsServer origin(identity, answer_http([](const std::string&) { return ok("mutual"); }),
                         &client_authority);
        world.start(origin.port);
        SecureClient client(world.port, pem_of(world.origin_authority), "api.example.com");
        Identity own = issue("client", "", &client_authority);
        SSL_use_certificate(client.session(), own.certificate.get());
        SSL_use_PrivateKey(client.session(), own.key.get());
        REQUIRE(client.connect());
        REQUIRE(client.say(get()));
        CHECK(client.hear("mutual").find("200 OK") != std::string::npos);
    }
}

TEST_CASE("a client that does not trust the authority is written down", "[egress]") {
    World world;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("x"); }));
    world.start(origin.port);
    Identity stranger = issue("stranger", "", nullptr);
    SecureClient client(world.port, pem_of(stranger), "api.example.com");
    CHECK_FALSE(client.connect());
    for (int i = 0; i < 1000 && !world.audit.has("api.example.com failed"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(world.audit.has("api.example.com failed"));
}

TEST_CASE("both legs resume their sessions", "[egress]") {
    World world;
    std::atomic<int> resumed{0};
    TlsServer origin(world.origin(), [&](SSL* session) {
        if (SSL_session_reused(session) == 1) ++resumed;
        hear(session, "\r\n\r\n");
        say(session, ok("done"));
        hear(session, "never");
    });
    world.start(origin.port);
    SSL_SESSION* kept = nullptr;
    int ours = 0;
    for (int i = 0; i < 4; ++i) {
        auto client = world.client();
        if (kept != nullptr) SSL_set_session(client.session(), kept);
        REQUIRE(client.connect());
        ours += SSL_session_reused(client.session());
        REQUIRE(client.say(get()));
        REQUIRE(client.hear("done").find("200 OK") != std::string::npos);
        SSL_SESSION_free(kept);
        kept = SSL_get1_session(client.session());
        SSL_shutdown(client.session());
    }
    CHECK(ours == 3);
    CHECK(resumed == 3);
    // What was agreed on for one name is worth nothing for another.
    world.gate.names["other.example.com"] = Action::allow;
    auto other = world.client("other.example.com");
    SSL_set_session(other.session(), kept);
    REQUIRE(other.connect());
    CHECK(SSL_session_reused(other.session()) == 0);
    SSL_SESSION_free(kept);
}

TEST_CASE("closing cuts what is open", "[egress]") {
    World world;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("x"); }));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    REQUIRE(client.hear("\r\n\r\nx").find("200 OK") != std::string::npos);
    world.stop();
    CHECK(client.hear_all().empty());
}

TEST_CASE("a change of policy cuts what it denies and nothing else", "[egress]") {
    World world;
    auto stream = [](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
        hear(session, "never");
    };
    TlsServer origin(world.origin("DNS:api.example.com,DNS:other.example.com"), stream);
    world.gate.names["passed.example.com"] = Action::pass_through;
    world.start(origin.port);
    auto denied = world.client();
    auto kept = world.client("other.example.com");
    for (auto* client : {&denied, &kept}) {
        REQUIRE(client->connect());
        REQUIRE(client->say(get(client == &denied ? "api.example.com" : "other.example.com")));
        REQUIRE(client->hear("1\r\nx\r\n").find("200 OK") != std::string::npos);
    }
    PlainClient passed(world.port);
    REQUIRE(passed.say(record(hello_message(server_name("passed.example.com")))));
    for (int i = 0; i < 1000 && !world.audit.has("passed.example.com passed"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    world.on_loop([&] {
        world.gate.names["api.example.com"] = Action::deny;
        world.gate.names["passed.example.com"] = Action::deny;
        world.interceptor->recheck(7);
    });
    CHECK(denied.hear_all().empty());
    passed.hear_all();
    CHECK(world.audit.has("api.example.com denied the policy has changed"));
    CHECK(world.settles_at(1));
    CHECK(world.gate.names["other.example.com"] == Action::allow);
}
