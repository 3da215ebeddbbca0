#include "interception_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

TEST_CASE("an allowed request goes through TLS on both sides and back", "[egress]") {
    World world;
    std::promise<std::string> seen;
    TlsServer origin(world.origin(), [&](SSL* session) {
        seen.set_value(hear(session, "\r\n\r\n"));
        say(session, ok("hello"));
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    CHECK(client.say(get("api.example.com", "X-Own: 1\r\nConnection: keep-alive\r\n")));
    std::string answer = client.hear("hello");
    CHECK(answer.substr(0, 17) == "HTTP/1.1 200 OK\r\n");
    std::string head = seen.get_future().get();
    CHECK(head.substr(0, head.find("\r\n")) == "GET /things?x=1 HTTP/1.1");
    CHECK(head.find("X-Own: 1\r\n") != std::string::npos);
    CHECK(head.find("Host: api.example.com\r\n") != std::string::npos);
    CHECK(head.find("keep-alive") == std::string::npos);
    CHECK(world.audit.has("connection api.example.com intercepted"));
    CHECK(world.audit.has("request GET api.example.com/things intercepted 0"));
}

TEST_CASE("a connection is used for many requests", "[egress]") {
    World world;
    TlsServer origin(world.origin(),
                     answer_http([](const std::string& head) { return ok(head.substr(0, 8)); }));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    for (int i = 0; i < 50; ++i) {
        std::string target = "/" + std::to_string(100 + i);
        REQUIRE(client.say("GET " + target + " HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
        CHECK(client.hear("GET " + target).find("200 OK") != std::string::npos);
    }
}

TEST_CASE("requests sent ahead are answered one after the other", "[egress]") {
    World world;
    TlsServer origin(world.origin(),
                     answer_http([](const std::string& head) { return ok(head.substr(0, 8)); }));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    std::string ahead;
    for (int i = 0; i < 500; ++i) {
        ahead += "GET /" + std::to_string(100 + i) + " HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
    }
    REQUIRE(client.say(ahead));
    for (int i = 0; i < 500; ++i) {
        REQUIRE(client.hear("GET /" + std::to_string(100 + i)).find("200 OK") != std::string::npos);
    }
}

TEST_CASE("a host that the policy denies is refused with the rule's name", "[egress]") {
    World world;
    world.gate.names["evil.example.com"] = Action::deny;
    world.settings.allow_other_hosts = true;
    TlsServer origin(world.origin("DNS:api.example.com,DNS:evil.example.com"),
                     answer_http([](const std::string&) { return ok("leaked"); }));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get("evil.example.com")));
    std::string answer = client.hear("rule for evil.example.com");
    CHECK(answer.find("HTTP/1.1 403 Forbidden\r\n") == 0);
    client.hear("\n");
    // The connection goes on.
    REQUIRE(client.say(get()));
    CHECK(client.hear("leaked").find("200 OK") != std::string::npos);
    CHECK(world.audit.has("request GET evil.example.com/things denied 403"));
}

TEST_CASE("a request for another host than the connection's is refused", "[egress]") {
    World world;
    bool other = GENERATE(false, true);
    world.settings.allow_other_hosts = other;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("leaked"); }));
    world.start(origin.port);
    for (std::string host : {"other.example.com", "api.example.com:444", "127.0.0.1",
                             "api.example.com@other.example.com", "other.example.com:443"}) {
        auto client = world.client();
        REQUIRE(client.connect());
        REQUIRE(client.say(get(host)));
        std::string answer = client.hear("\r\n");
        INFO(host);
        CHECK((answer.find(" 421 ") != std::string::npos ||
               answer.find(" 400 ") != std::string::npos));
    }
}

TEST_CASE("a denied name gets an alert that says so", "[egress]") {
    World world;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("leaked"); }));
    world.start(origin.port);
    auto client = world.client("denied.example.com");
    CHECK_FALSE(client.connect());
    CHECK(client.failure.find("access denied") != std::string::npos);
    CHECK(world.audit.has("connection denied.example.com denied default deny"));
}

TEST_CASE("a name that does not stand at the address is denied", "[egress]") {
    World world;
    world.gate.misplaced = {"api.example.com"};
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("leaked"); }));
    world.start(origin.port);
    auto client = world.client();
    CHECK_FALSE(client.connect());
    CHECK(client.failure.find("access denied") != std::string::npos);
}

TEST_CASE("a server whose certificate does not hold is told to the client", "[egress]") {
    World world;
    Identity stranger = issue("stranger", "", nullptr);
    Identity untrusted = issue("origin", "DNS:api.example.com", &stranger);
    Identity misnamed = world.origin("DNS:wrong.example.com");
    bool wrong_name = GENERATE(false, true);
    TlsServer origin(wrong_name ? misnamed : untrusted,
                     answer_http([](const std::string&) { return ok("leaked"); }));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    std::string answer = client.hear("does not hold");
    CHECK(answer.find("HTTP/1.1 502 ") == 0);
    CHECK(answer.find("does not hold") != std::string::npos);
}

TEST_CASE("a server that cannot be reached is told to the client", "[egress]") {
    World world;
    std::uint16_t nobody = 0;
    {
        UniqueFd closed = listen_loopback(nobody);
    }
    world.start(nobody);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    CHECK(client.hear("refused").find("HTTP/1.1 502 ") == 0);
    CHECK(world.audit.has("connection api.example.com failed"));
}

TEST_CASE("bodies of every framing pass in both directions with their trailers", "[egress]") {
    World world;
    std::promise<std::string> seen;
    TlsServer origin(world.origin(), [&](SSL* session) {
        std::string request = hear(session, "\r\n\r\n");
        request += hear(session, "X-After: yes\r\n\r\n");
        seen.set_value(request);
        say(session,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            "5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\nX-Sum: 42\r\n\r\n");
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(
        client.say("POST /up HTTP/1.1\r\nHost: api.example.com\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n"
                   "3\r\nabc\r\n0\r\nX-After: yes\r\n\r\n"));
    std::string answer = client.hear("X-Sum: 42\r\n\r\n");
    CHECK(answer.find("5\r\nhello\r\n") != std::string::npos);
    CHECK(answer.find("1\r\n!\r\n0\r\nX-Sum: 42\r\n\r\n") != std::string::npos);
    std::string request = seen.get_future().get();
    CHECK(request.find("3\r\nabc\r\n0\r\nX-After: yes\r\n\r\n") != std::string::npos);
}

TEST_CASE("large bodies pass whole in both directions", "[egress]") {
    World world;
    constexpr std::size_t kSize = 20 * 1024 * 1024;
    std::string big(kSize, 'x');
    for (std::size_t i = 0; i < kSize; i += 4096)
        big[i] = static_cast<char>('a' + i / 4096 % 26);
    std::promise<bool> same;
    TlsServer origin(world.origin(), [&](SSL* session) {
        hear(session, "\r\n\r\n");
        same.set_value(hear_bytes(session, kSize) == big);
        say(session, ok(big));
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say("PUT /big HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: " +
                       std::to_string(kSize) + "\r\n\r\n"));
    REQUIRE(client.say(big));
    CHECK(same.get_future().get());
    client.hear("\r\n\r\n");
    CHECK(client.hear_bytes(kSize) == big);
}

TEST_CASE("an answer flows while its request is still being sent", "[egress]") {
    World world;
    TlsServer origin(world.origin(), [](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 5; ++i) {
            if (hear(session, "ping\r\n").empty()) return;
            say(session, "4\r\npong\r\n");
        }
        say(session, "0\r\n\r\n");
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(
        client.say("POST /duplex HTTP/1.1\r\nHost: api.example.com\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 5; ++i) {
        REQUIRE(client.say("4\r\nping\r\n"));
        REQUIRE(client.hear("pong").find("pong") != std::string::npos);
    }
    REQUIRE(client.say("0\r\n\r\n"));
    CHECK(client.hear("0\r\n\r\n").find("0\r\n\r\n") != std::string::npos);
}

TEST_CASE("events reach the client as they come", "[egress]") {
    World world;
    std::promise<void> go;
    auto may_go = go.get_future();
    TlsServer origin(world.origin(), [&](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\n\r\nb\r\ndata: one\n\n\r\n");
        may_go.wait();
        say(session, "b\r\ndata: two\n\n\r\n0\r\n\r\n");
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    CHECK(client.hear("data: one").find("data: one") != std::string::npos);
    go.set_value();
    CHECK(client.hear("0\r\n\r\n").find("data: two") != std::string::npos);
}

TEST_CASE("interim answers are passed on, and bodies that wait for them", "[egress]") {
    World world;
    TlsServer origin(world.origin(), [](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session,
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            "HTTP/1.1 100 Continue\r\n\r\n");
        say(session, ok(hear(session, "body")));
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(
        client.say("POST / HTTP/1.1\r\nHost: api.example.com\r\nExpect: 100-continue\r\n"
                   "Content-Length: 4\r\n\r\n"));
    std::string interim = client.hear("100 Continue\r\n\r\n");
    CHECK(interim.find("103 Early Hints\r\nLink: </a>") != std::string::npos);
    REQUIRE(client.say("body"));
    CHECK(client.hear("\r\n\r\nbody").find("200 OK") != std::string::npos);
}

TEST_CASE("a change to WebSocket becomes a pipe, another change does not happen", "[egress]") {
    World world;
    TlsServer origin(world.origin(), [](SSL* session) {
        std::string head = hear(session, "\r\n\r\n");
        if (head.find("Upgrade: websocket") == std::string::npos) {
            say(session, ok("no upgrade: " + std::to_string(head.find("h2c"))));
            hear(session, "never");
            return;
        }
        say(session,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
            "Upgrade: WebSocket\r\n\r\nfirst");
        for (int i = 0; i < 3; ++i)
            say(session, "<" + hear_bytes(session, 4) + ">");
    });
    world.start(origin.port);
    std::string fields = "Connection: Upgrade\r\nUpgrade: ";
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get("api.example.com", fields + "websocket\r\n")));
    CHECK(client.hear("first").find("101 Switching") != std::string::npos);
    for (std::string frame : {"\x81\x01\x00\xff", "\r\n\r\n", "GET "}) {
        frame.resize(4, '\0');
        REQUIRE(client.say(frame));
        CHECK(client.hear_bytes(6) == "<" + frame + ">");
    }
    CHECK(client.hear_all().empty());
    auto other = world.client();
    REQUIRE(other.connect());
    REQUIRE(other.say(get("api.example.com", fields + "h2c\r\n")));
    CHECK(other.hear("no upgrade: " + std::to_string(std::string::npos)).find("200") !=
          std::string::npos);
}

TEST_CASE("an answer without a length ends with the connection", "[egress]") {
    World world;
    TlsServer origin(world.origin(), [](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
        SSL_shutdown(session);
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    std::string answer = client.hear_all();
    CHECK(answer.find("d\r\nuntil the end\r\n0\r\n\r\n") != std::string::npos);
    CHECK(client.ended_in_order);
}

TEST_CASE("an answer that is cut short looks so to the client", "[egress]") {
    World world;
    std::string begun = GENERATE("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
                                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                                 "HTTP/1.1 200 OK\r\n\r\nabc");
    TlsServer origin(world.origin(), [&](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, begun);
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    std::string answer = client.hear_all();
    CHECK(answer.find("abc") != std::string::npos);
    CHECK(answer.find("\r\n0\r\n\r\n") == std::string::npos);
}

TEST_CASE("a server that answers nothing or nonsense is reported as such", "[egress]") {
    World world;
    std::string words = GENERATE("", "SMTP ready\r\n\r\n",
                                 "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n"
                                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                                 "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                                 "Upgrade: websocket\r\n\r\n");
    TlsServer origin(world.origin(), [&](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, words);
        SSL_shutdown(session);
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    CHECK(client.hear_all().find("HTTP/1.1 502 ") == 0);
}

TEST_CASE("what a server sends unasked reaches nobody", "[egress]") {
    World world;
    std::promise<void> sent;
    TlsServer origin(world.origin(), [&](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, ok("one") + ok("forged"));
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    std::string all = client.hear_all();
    CHECK(all.find("one") != std::string::npos);
    CHECK(all.find("forged") == std::string::npos);
}
