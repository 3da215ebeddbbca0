#include "egress/intercept/core/selection.hpp"

#include "hello_bytes.hpp"
#include "http2_peer.hpp"
#include "interception_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

std::string certificate_text(const Identity& identity) {
    std::unique_ptr<BIO, OpensslDeleter<BIO_free>> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), identity.certificate.get());
    char* data = nullptr;
    long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

/// Where a credential is bound to api.example.com alone.
struct BoundWorld : World {
    BoundWorld() {
        gate.interest_of_others = Interest::unbound;
        gate.interests["api.example.com"] = Interest::bound;
    }
    SecureClient direct_client(const std::string& name) const {
        return SecureClient(port, certificate_text(origin_authority), name, {"http/1.1"});
    }
};

TlsServer::Script answering(const std::string& text) {
    return answer_http([text](const std::string&) { return ok(text); });
}

}  // namespace

TEST_CASE("without a credential for its host a connection meets the server itself", "[egress]") {
    BoundWorld world;
    Identity identity = world.origin("DNS:other.example.com,DNS:api.example.com");
    std::atomic<int> hooked{0};
    world.hook.body = [&](const OutgoingRequest&) {
        ++hooked;
        return RequestTreatment();
    };
    TlsServer origin(identity, answering("direct"));
    world.start(origin.port);
    auto client = world.direct_client("other.example.com");
    REQUIRE(client.connect());
    CHECK(X509_cmp(client.certificate().get(), identity.certificate.get()) == 0);
    // The host of a request that nobody reads gets no credential: domain fronting.
    REQUIRE(client.say(get("api.example.com")));
    CHECK(client.hear("direct").find("200 OK") != std::string::npos);
    CHECK(hooked == 0);
    CHECK(world.audit.has("connection other.example.com passed no_binding_host"));
}

TEST_CASE("with a credential for its host a connection is read, for that host alone", "[egress]") {
    BoundWorld world;
    std::atomic<int> hooked{0};
    world.hook.body = [&](const OutgoingRequest&) {
        ++hooked;
        return RequestTreatment();
    };
    TlsServer origin(world.origin("DNS:other.example.com,DNS:api.example.com"), answering("read"));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    CHECK(client.hear("read").find("200 OK") != std::string::npos);
    CHECK(hooked == 1);
    auto fronting = world.client();
    REQUIRE(fronting.connect());
    REQUIRE(fronting.say(get("other.example.com")));
    CHECK(fronting.hear("\r\n").find(" 421 ") != std::string::npos);
    CHECK(hooked == 1);
}

TEST_CASE("what the policy denies does not pass because nobody reads it", "[egress]") {
    BoundWorld world;
    TlsServer origin(world.origin("DNS:denied.example.com,DNS:other.example.com"), answering("x"));
    world.gate.misplaced.insert("other.example.com");
    world.start(origin.port);
    for (const std::string name : {"denied.example.com", "other.example.com", ""}) {
        INFO(name);
        auto client = world.direct_client(name);
        CHECK_FALSE(client.connect());
        CHECK(client.failure.find("access denied") != std::string::npos);
    }
}

TEST_CASE("a name that is hidden or missing passes unread, with its reason", "[egress]") {
    BoundWorld world;
    std::uint16_t port = 0;
    UniqueFd listener = listen_loopback(port);
    std::promise<std::string> seen;
    std::thread server([&] {
        UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::string all(4096, '\0');
        const ssize_t count = fd ? ::recv(fd.get(), all.data(), all.size(), 0) : 0;
        seen.set_value(all.substr(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0))));
    });
    std::string hello;
    std::string reason;
    SECTION("hidden, behind a host that has a credential") {
        hello = record(hello_message(server_name("api.example.com") + extension(0xfe0d, "sealed")));
        reason = "api.example.com passed ech";
    }
    SECTION("missing, at an address that a rule allows") {
        world.gate.addresses = Action::allow;
        hello = record(hello_message(""));
        reason = "passed no_sni";
    }
    SECTION("hidden, while what is bound is unknown") {
        world.gate.interests["api.example.com"] = Interest::unknown;
        hello = record(hello_message(server_name("api.example.com") + extension(0xfe0d, "sealed")));
        reason = "api.example.com passed ech";
    }
    SECTION("on the operator's list, while what is bound is unknown") {
        world.gate.interests["api.example.com"] = Interest::unknown;
        world.gate.names["api.example.com"] = Action::pass_through;
        hello = record(hello_message(server_name("api.example.com")));
        reason = "api.example.com passed static_ignore";
    }
    world.start(port);
    PlainClient client(world.port);
    client.say(hello);
    client.end_sending();
    CHECK(seen.get_future().get() == hello);
    server.join();
    CHECK(world.audit.has(reason));
}

TEST_CASE("a hello that may hide a name is refused where that is wished", "[egress]") {
    BoundWorld world;
    world.settings.encrypted_hello = EncryptedHello::deny;
    world.start(1);
    PlainClient client(world.port);
    client.say(record(hello_message(server_name("api.example.com") + extension(0xfe0d, "sealed"))));
    client.end_sending();
    CHECK(client.hear_all() == std::string("\x15\x03\x03\x00\x02\x02\x31", 7));
}

TEST_CASE("while what is bound is unknown, connections by name are refused", "[egress]") {
    BoundWorld world;
    world.gate.interest_of_others = Interest::unknown;
    TlsServer origin(world.origin("DNS:other.example.com"), answering("x"));
    world.start(origin.port);
    auto client = world.direct_client("other.example.com");
    CHECK_FALSE(client.connect());
    CHECK(client.failure.find("access denied") != std::string::npos);
    CHECK(world.audit.has("other.example.com denied bootstrapping"));
}

TEST_CASE("too many connections that are read hold up no others, and pass nothing unread",
          "[egress]") {
    BoundWorld world;
    world.settings.max_decrypted = 1;
    TlsServer origin(world.origin("DNS:other.example.com,DNS:api.example.com"), answering("x"));
    world.start(origin.port);
    auto first = world.client();
    REQUIRE(first.connect());
    REQUIRE(first.say(get()));
    REQUIRE(first.hear("\r\n\r\nx").find("200 OK") != std::string::npos);
    auto second = world.client();
    CHECK_FALSE(second.connect());
    CHECK(world.audit.has("api.example.com denied registry_exhausted"));
    auto other = world.direct_client("other.example.com");
    REQUIRE(other.connect());
    REQUIRE(other.say(get("other.example.com")));
    CHECK(other.hear("\r\n\r\nx").find("200 OK") != std::string::npos);
    SSL_shutdown(first.session());
    first.hear_all();
    CHECK(world.settles_at(1));
    auto third = world.client();
    CHECK(third.connect());
}

TEST_CASE("a credential that goes ends what was read for it", "[egress]") {
    BoundWorld world;
    std::promise<void> answer;
    std::shared_future<void> may_answer(answer.get_future());
    auto script = [may_answer](SSL* session) {
        while (true) {
            std::string head = hear(session, "\r\n\r\n");
            if (head.find("\r\n\r\n") == std::string::npos) return;
            if (head.find("GET /slow") == 0) may_answer.wait();
            if (!say(session, ok("done"))) return;
        }
    };
    TlsServer origin(world.origin("DNS:api.example.com,DNS:other.example.com"), script);
    world.gate.interests["other.example.com"] = Interest::bound;
    world.start(origin.port);
    auto idle = world.client();
    auto kept = world.client("other.example.com");
    for (auto* client : {&idle, &kept}) {
        REQUIRE(client->connect());
        REQUIRE(client->say(get(client == &idle ? "api.example.com" : "other.example.com")));
        REQUIRE(client->hear("done").find("200 OK") != std::string::npos);
    }
    auto busy = world.client();
    REQUIRE(busy.connect());
    REQUIRE(busy.say("GET /slow HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
    for (int i = 0; i < 1000 && !world.audit.has("request GET api.example.com/slow"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    world.on_loop([&] {
        world.gate.interests["api.example.com"] = Interest::unbound;
        world.interceptor->retire_unbound(7);
    });
    CHECK(idle.hear_all().empty());
    answer.set_value();
    // What was asked for before is answered, what comes after is not read.
    CHECK(busy.hear("done").find("200 OK") != std::string::npos);
    busy.say(get());
    const std::string rest = busy.hear_all();
    CHECK((rest.empty() || rest.find("421") != std::string::npos));
    CHECK(rest.find("200 OK") == std::string::npos);
    REQUIRE(kept.say(get("other.example.com")));
    CHECK(kept.hear("done").find("200 OK") != std::string::npos);
    auto again = world.direct_client("api.example.com");
    REQUIRE(again.connect());
    CHECK(world.audit.has("api.example.com passed no_binding_host"));
}

TEST_CASE("a credential that goes ends a request that does not end by itself", "[egress]") {
    BoundWorld world;
    world.settings.retirement = std::chrono::milliseconds(50);
    auto stream = [](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
        hear(session, "never");
    };
    TlsServer origin(world.origin(), stream);
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    REQUIRE(client.hear("1\r\nx\r\n").find("200 OK") != std::string::npos);
    world.on_loop([&] {
        world.gate.interests["api.example.com"] = Interest::unbound;
        world.interceptor->retire_unbound(7);
    });
    CHECK(client.hear_all().empty());
}

TEST_CASE("plain HTTP is judged request by request, whatever credentials there are", "[egress]") {
    BoundWorld world;
    std::atomic<int> hooked{0};
    world.hook.body = [&](const OutgoingRequest& request) {
        if (request.scheme == "http") ++hooked;
        return RequestTreatment();
    };
    world.start(1);
    PlainClient client(world.port);
    client.say("GET / HTTP/1.1\r\nHost: denied.example.com\r\n\r\n");
    CHECK(client.hear_all().find("HTTP/1.1 4") == 0);
    CHECK(world.audit.has("request GET denied.example.com/ denied"));
    CHECK(hooked == 0);
}
