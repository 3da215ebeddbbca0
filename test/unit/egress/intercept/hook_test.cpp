#include "http2_peer.hpp"
#include "interception_world.hpp"

#include <atomic>
#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

const std::string kBoth = wire_list({"h2", "http/1.1"});

/// Puts a secret in, takes it out of answers.
RequestTreatment inject(const OutgoingRequest& request) {
    RequestTreatment treatment;
    request.fields.set("Authorization", "Bearer s3cret");
    request.target = "/changed" + request.target;
    treatment.redact = [](http::Fields& fields) {
        http::Fields clean;
        for (const auto& [name, value] : fields) {
            bool secret = value.find("s3cret") != std::string::npos;
            clean.add(name, secret ? "[REDACTED]" : value);
        }
        fields = std::move(clean);
    };
    return treatment;
}

RequestTreatment shout(const OutgoingRequest&) {
    RequestTreatment treatment;
    treatment.rewrite_body = [](std::string body) -> std::optional<std::string> {
        if (body == "fail") return std::nullopt;
        if (body == "throw") throw std::runtime_error("s3cret");
        return body + "!!!";
    };
    return treatment;
}

}  // namespace

TEST_CASE("a hook changes requests of HTTP/1 and cleans their answers", "[egress]") {
    std::atomic<int> as_expected = 0;
    World world;
    world.hook.body = [&](const OutgoingRequest& request) {
        if (request.scheme == "https" && request.host == "api.example.com" && request.client == 7)
            ++as_expected;
        return inject(request);
    };
    TlsServer origin(world.origin(), [](SSL* session) {
        std::string head = hear(session, "\r\n\r\n");
        say(session, "HTTP/1.1 103 Early Hints\r\nX-Echo: s3cret early\r\n\r\n");
        say(session,
            "HTTP/1.1 200 OK\r\nX-Echo: Bearer s3cret\r\nTransfer-Encoding: chunked\r\n\r\n");
        std::string body = head.substr(0, head.find("\r\n"));
        say(session, "ff;x\r\n" + (body + std::string(255 - body.size(), '.')) + "\r\n");
        say(session, "0\r\nX-Sum: s3cret\r\n\r\n");
        std::string seen = head.find("Authorization: Bearer s3cret\r\n") == std::string::npos
                               ? "none"
                               : "injected";
        hear(session, "\r\n\r\n");
        say(session, ok(seen));
        hear(session, "never");
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get("api.example.com", "Authorization: mine\r\n")));
    std::string answer = client.hear("X-Sum: [REDACTED]\r\n\r\n");
    CHECK(answer.find("GET /changed/things?x=1 HTTP/1.1") != std::string::npos);
    CHECK(answer.find("X-Echo: [REDACTED]") != std::string::npos);
    CHECK(answer.find("s3cret") == std::string::npos);
    REQUIRE(client.say(get()));
    CHECK(client.hear("injected").find("injected") != std::string::npos);
    CHECK(as_expected == 2);
    CHECK(world.audit.has("api.example.com/things"));
    CHECK_FALSE(world.audit.has("changed"));
}

TEST_CASE("a hook changes requests of HTTP/2 and cleans their answers", "[egress]") {
    World world;
    world.hook.body = inject;
    TlsServer origin(
        world.origin(),
        [](SSL* session) {
            Http2Peer peer(session, true);
            if (!peer.until([&] { return peer.messages[1].ended; })) return;
            auto& message = peer.messages[1];
            bool there = message.get("authorization") == "Bearer s3cret";
            peer.respond(1, "200", {{"x-echo", "s3cret"}},
                         message.get(":path") + (there ? " injected" : " none"), false,
                         {{"x-sum", "s3cret"}});
            peer.until([] { return false; });
        },
        nullptr, speaking(kBoth));
    world.start(origin.port);
    auto client = world.client("api.example.com", {"h2"});
    REQUIRE(client.connect());
    Http2Peer peer(client.session(), false);
    auto id = peer.request("GET", "/a", {{"authorization", "mine"}});
    REQUIRE(peer.until_ended(id));
    CHECK(peer.messages[id].body == "/changed/a injected");
    CHECK(peer.messages[id].get("x-echo") == "[REDACTED]");
    CHECK(peer.messages[id].get("x-sum") == "[REDACTED]");
}

TEST_CASE("a hook that fails lets nothing out", "[egress]") {
    World world;
    std::string way = GENERATE("throw", "refuse", "spoil");
    world.hook.body = [way](const OutgoingRequest& request) {
        RequestTreatment treatment;
        if (way == "throw") throw std::runtime_error("s3cret");
        if (way == "refuse") treatment.refusal.emplace(403, "credential binding ambiguous");
        if (way == "spoil") request.target = "/a HTTP/1.1\r\nHost: evil";
        return treatment;
    };
    std::atomic<int> requests{0};
    TlsServer origin(world.origin(), answer_http([&](const std::string&) {
                         ++requests;
                         return ok("leaked");
                     }),
                     nullptr, speaking(wire_list({"http/1.1"})));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say("GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"));
    std::string answer = client.hear_all();
    CHECK(answer.find(way == "refuse" ? "HTTP/1.1 403 " : "HTTP/1.1 502 ") == 0);
    CHECK(answer.find("s3cret") == std::string::npos);
    CHECK(requests == 0);
}

TEST_CASE("a body is rewritten whole, with its new length", "[egress]") {
    World world;
    world.hook.body = shout;
    world.settings.limits.max_rewritten_body = 1000;
    std::atomic<int> requests{0};
    TlsServer origin(world.origin(), [&](SSL* session) {
        std::string head = hear(session, "\r\n\r\n");
        if (head.empty()) return;
        ++requests;
        bool sized = head.find("Content-Length: 7\r\n") != std::string::npos;
        bool chunked = head.find("chunked") != std::string::npos;
        std::string body = sized ? hear_bytes(session, 7) : "";
        say(session, ok(body + (chunked ? " chunked" : " sized")));
        hear(session, "never");
    });
    world.start(origin.port);
    std::string start = "POST / HTTP/1.1\r\nHost: api.example.com\r\n";
    SECTION("of a known length") {
        auto client = world.client();
        REQUIRE(client.connect());
        REQUIRE(client.say(start + "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"));
        CHECK(client.hear("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
        REQUIRE(client.say("body"));
        CHECK(client.hear(" sized").find("body!!! sized") != std::string::npos);
    }
    SECTION("in chunks") {
        auto client = world.client();
        REQUIRE(client.connect());
        REQUIRE(client.say(start +
                           "Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"));
        CHECK(client.hear(" sized").find("body!!! sized") != std::string::npos);
    }
    SECTION("too large, or not to be rewritten") {
        for (std::string rest : {"Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'),
                                 "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                                     std::string(1001, 'x') + "\r\n0\r\n\r\n",
                                 std::string("Content-Length: 4\r\n\r\nfail"),
                                 std::string("Content-Length: 5\r\n\r\nthrow")}) {
            auto client = world.client();
            REQUIRE(client.connect());
            REQUIRE(client.say(start + rest));
            std::string answer = client.hear_all();
            bool large = rest.size() > 1000;
            CHECK(answer.find(large ? "HTTP/1.1 413 " : "HTTP/1.1 502 ") == 0);
            CHECK(answer.find("s3cret") == std::string::npos);
        }
        CHECK(requests == 0);
    }
}

TEST_CASE("a body is rewritten whole in HTTP/2", "[egress]") {
    World world;
    world.hook.body = shout;
    world.settings.limits.max_rewritten_body = 1000;
    TlsServer origin(
        world.origin(),
        [](SSL* session) {
            Http2Peer peer(session, true);
            std::set<std::int32_t> answered;
            peer.until([&] {
                for (auto& [id, message] : peer.messages) {
                    bool now = message.ended && !message.closed;
                    if (!now || !answered.insert(id).second) continue;
                    peer.respond(id, "200", {}, message.body + " " + message.get("content-length"));
                }
                return false;
            });
        },
        nullptr, speaking(kBoth));
    world.start(origin.port);
    auto client = world.client("api.example.com", {"h2"});
    REQUIRE(client.connect());
    Http2Peer peer(client.session(), false);
    auto good = peer.request("POST", "/", {{"content-length", "4"}}, "body");
    auto none = peer.request("GET", "/");
    auto large = peer.request("POST", "/", {}, std::string(5000, 'x'));
    auto failing = peer.request("POST", "/", {}, "fail");
    for (auto id : {good, none, large, failing})
        REQUIRE(peer.until_ended(id));
    CHECK(peer.messages[good].body == "body!!! 7");
    CHECK(peer.messages[none].get(":status") == "200");
    CHECK(peer.messages[large].get(":status") == "413");
    CHECK(peer.messages[failing].get(":status") == "502");
}
