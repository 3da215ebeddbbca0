#include "hello_bytes.hpp"
#include "interception_world.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

TEST_CASE("a client may be cut off at any point and nothing is left", "[egress]") {
    World world;
    TlsServer origin(world.origin(), [](SSL* session) {
        std::string head = hear(session, "\r\n\r\n");
        if (head.find("Upgrade: websocket") != std::string::npos) {
            say(session,
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                "Upgrade: websocket\r\n\r\n");
        } else if (head.find("GET /stream") != std::string::npos) {
            say(session, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
        }
        hear(session, "never");
    });
    world.start(origin.port);
    {
        PlainClient nothing(world.port);
    }
    {
        PlainClient half(world.port);
        half.say(record(hello_message(server_name("api.example.com"))).substr(0, 20));
    }
    {
        PlainClient whole(world.port);
        whole.say(record(hello_message(server_name("api.example.com"))));
    }
    std::string post = "POST / HTTP/1.1\r\nHost: api.example.com\r\n";
    for (std::string said :
         {std::string(), std::string("GET / HT"), get(), post + "Content-Length: 100\r\n\r\nbegun",
          post + "Transfer-Encoding: chunked\r\n\r\n64\r\nbegun",
          post + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
          std::string("GET /stream HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
          get("api.example.com", "Connection: Upgrade\r\nUpgrade: websocket\r\n")}) {
        auto client = world.client();
        REQUIRE(client.connect());
        REQUIRE(client.say(said));
        bool answered = said.find("/stream") != std::string::npos ||
                        said.find("websocket") != std::string::npos;
        if (answered) client.hear("\r\n\r\n");
        client.cut();
    }
    CHECK(world.settles_at(0));
}

TEST_CASE("a server may be cut off at any point and nothing is left", "[egress]") {
    World world;
    std::string words = GENERATE("", "HTTP/1.1 2", "HTTP/1.1 100 Continue\r\n\r\n",
                                 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
                                 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole",
                                 "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                                 "Upgrade: websocket\r\n\r\nbegun");
    TlsServer origin(world.origin(), [&](SSL* session) {
        hear(session, "\r\n\r\n");
        say(session, words);
    });
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get("api.example.com", "Connection: Upgrade\r\nUpgrade: websocket\r\n")));
    client.hear_all();
    client.cut();
    CHECK(world.settles_at(0));
}

TEST_CASE("a server that is cut off in its handshake is reported", "[egress]") {
    World world;
    std::uint16_t port = 0;
    UniqueFd listener = listen_loopback(port);
    std::thread server([&] {
        UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        char piece[100];
        if (fd) ::recv(fd.get(), piece, sizeof(piece), 0);
    });
    world.start(port);
    auto client = world.client();
    bool connected = client.connect();
    if (connected) client.say(get());
    std::string answer = connected ? client.hear("\r\n") : "";
    ::shutdown(listener.get(), SHUT_RDWR);
    server.join();
    REQUIRE(connected);
    CHECK(answer.find("HTTP/1.1 502 ") == 0);
}
