#include "interception_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

/// A server without TLS that runs a script for each connection.
class PlainServer {
  public:
    explicit PlainServer(std::function<void(int fd)> script)
        : script_(std::move(script)), listener_(listen_loopback(port)) {
        acceptor_ = std::thread([this] {
            while (true) {
                int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
                if (fd < 0) return;
                ++accepted;
                limit_waiting(fd);
                std::lock_guard lock(mutex_);
                connections_.emplace_back(fd);
                threads_.emplace_back([this, fd] {
                    script_(fd);
                    ::shutdown(fd, SHUT_RDWR);
                });
            }
        });
    }
    ~PlainServer() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        acceptor_.join();
        for (UniqueFd& fd : connections_)
            ::shutdown(fd.get(), SHUT_RDWR);
        for (std::thread& thread : threads_)
            thread.join();
    }

    std::uint16_t port = 0;
    std::atomic<int> accepted{0};

  private:
    std::function<void(int)> script_;
    UniqueFd listener_;
    std::thread acceptor_;
    std::mutex mutex_;
    std::vector<UniqueFd> connections_;
    std::vector<std::thread> threads_;
};

std::string hear_plain(int fd, const std::string& until) {
    std::string text;
    char byte = 0;
    while (text.find(until) == std::string::npos) {
        if (::recv(fd, &byte, 1, 0) <= 0) break;
        text += byte;
    }
    return text;
}

void say_plain(int fd, const std::string& text) {
    ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

void answer_with_target(int fd) {
    while (true) {
        std::string head = hear_plain(fd, "\r\n\r\n");
        if (head.find("\r\n\r\n") == std::string::npos) return;
        say_plain(fd, ok(head.substr(0, head.find("\r\n")) + "|"));
    }
}

}  // namespace

TEST_CASE("plain HTTP is judged by its Host and relayed", "[egress]") {
    World world;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(client.say(get()));
    CHECK(client.hear("|").find("GET /things?x=1 HTTP/1.1|") != std::string::npos);
    // Several names may share one connection, as long as each is allowed where it goes.
    REQUIRE(client.say(get("other.example.com")));
    CHECK(client.hear("|").find("200 OK") != std::string::npos);
    REQUIRE(client.say(get("evil.example.com")));
    CHECK(client.hear("(default deny)").find("403 Forbidden") != std::string::npos);
    CHECK(world.audit.has("request GET evil.example.com/things denied 403"));
}

TEST_CASE("a request that is refused connects to nothing", "[egress]") {
    World world;
    world.gate.misplaced = {"other.example.com"};
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    for (std::string host : {"evil.example.com", "other.example.com", "127.0.0.2", "127.0.0.1",
                             "[::1]", "127.1", "", "a b", "api.example.com:1"}) {
        PlainClient client(world.port);
        REQUIRE(client.say(get(host)));
        std::string answer = client.hear("\r\n");
        INFO(host + ": " + answer);
        CHECK(answer.find("HTTP/1.1 4") == 0);
    }
    CHECK(origin.accepted == 0);
}

TEST_CASE("an address is judged as one", "[egress]") {
    World world;
    world.gate.addresses = Action::allow;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(client.say(get("127.0.0.1:" + std::to_string(origin.port))));
    CHECK(client.hear("|").find("200 OK") != std::string::npos);
    PlainClient old(world.port);
    REQUIRE(old.say("GET /old HTTP/1.0\r\n\r\n"));
    std::string answer = old.hear_all();
    CHECK(answer.find("GET /old HTTP/1.1|") != std::string::npos);
    CHECK(answer.find("Connection: close") != std::string::npos);
}

TEST_CASE("an absolute target counts as the host", "[egress]") {
    World world;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(client.say("GET http://evil.example.com/a HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
    CHECK(client.hear("\r\n").find(" 403 ") != std::string::npos);
}

TEST_CASE("what two parties could read in two ways is refused", "[egress]") {
    World world;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    std::string host = "Host: api.example.com\r\n";
    std::string smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\n" + host + "\r\n";
    std::string text = GENERATE_COPY(
        "POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" +
            smuggled,
        "POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + smuggled,
        "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled,
        "POST / HTTP/1.1\r\n" + host +
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + smuggled,
        "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n" + smuggled,
        "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n" + smuggled,
        "POST / HTTP/1.1\r\n" + host + "X: a\r\n Transfer-Encoding: chunked\r\n\r\n" + smuggled,
        "POST / HTTP/1.1\r\n" + host + "Content-Length: +5\r\n\r\n" + smuggled,
        "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" + smuggled,
        "GET / HTTP/1.1\r\n" + host + "Host: evil.example.com\r\n\r\n",
        "GET / HTTP/1.1\n" + host + "\r\n", "GET / HTTP/1.1\r\n" + host + "X: a\rb\r\n\r\n",
        std::string("GET / HTTP/1.1\r\n") + host + "X: a" + std::string(1, '\0') + "\r\n\r\n",
        "GET / HTTP/2.0\r\n" + host + "\r\n",
        "CONNECT evil.example.com:443 HTTP/1.1\r\n" + host + "\r\n",
        "TRACE / HTTP/1.1\r\n" + host + "\r\n");
    PlainClient client(world.port);
    REQUIRE(client.say(text));
    client.end_sending();
    std::string answer = client.hear_all();
    INFO(text + " -> " + answer);
    bool refused = answer.find("HTTP/1.1 4") == 0 || answer.find("HTTP/1.1 5") == 0;
    CHECK(refused);
    CHECK(answer.find("smuggled") == std::string::npos);
    CHECK(origin.accepted == 0);
}

TEST_CASE("a chunked body that breaks is not taken for a whole one", "[egress]") {
    World world;
    std::promise<std::string> seen;
    PlainServer origin([&](int fd) { seen.set_value(hear_plain(fd, "0\r\n\r\n")); });
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(
        client.say("POST / HTTP/1.1\r\nHost: api.example.com\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"));
    client.hear_all();
    CHECK(seen.get_future().get().find("0\r\n\r\n") == std::string::npos);
}

TEST_CASE("a header that is too large is refused", "[egress]") {
    World world;
    world.settings.limits.max_header = 8192;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(client.say(get("api.example.com", "X: " + std::string(9000, 'x') + "\r\n")));
    CHECK(client.hear("\r\n").find(" 431 ") != std::string::npos);
    CHECK(origin.accepted == 0);
}

TEST_CASE("a client that ends its side still gets its answer", "[egress]") {
    World world;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(client.say(get()));
    client.end_sending();
    CHECK(client.hear_all().find("GET /things") != std::string::npos);
}

TEST_CASE("an early answer reaches a client that is still sending", "[egress]") {
    World world;
    PlainServer origin([](int fd) {
        hear_plain(fd, "\r\n\r\n");
        say_plain(fd,
                  "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"
                  "Content-Length: 4\r\n\r\nbig!");
    });
    world.start(origin.port);
    PlainClient client(world.port);
    REQUIRE(
        client.say("PUT / HTTP/1.1\r\nHost: api.example.com\r\n"
                   "Content-Length: 100000000\r\n\r\nsome"));
    CHECK(client.hear("big!").find(" 413 ") != std::string::npos);
}

TEST_CASE("bytes that are neither TLS nor HTTP end the connection", "[egress]") {
    World world;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    // A line that is no request's is not waited behind for a head's end.
    for (const std::string& said : {std::string("\x00\x01\x02", 3), std::string("SSH-2.0-x\r\n"),
                                    std::string("\r\nHELO x\n"), std::string("get / HTTP/1.1")}) {
        INFO(said);
        PlainClient client(world.port);
        REQUIRE(client.say(said));
        CHECK(client.hear_all().empty());
        CHECK(client.was_reset);
    }
    CHECK(origin.accepted == 0);
    CHECK(world.audit.has("denied neither TLS nor HTTP"));
}

TEST_CASE("a client that says nothing is let go", "[egress]") {
    World world;
    world.settings.hello_timeout = std::chrono::milliseconds(50);
    world.start(1);
    PlainClient silent(world.port);
    CHECK(silent.hear_all().empty());
    PlainClient slow(world.port);
    REQUIRE(slow.say(std::string("\x16\x03\x01", 3)));
    CHECK(slow.hear_all().empty());
}

TEST_CASE("a client may hold a limited number of connections", "[egress]") {
    World world;
    world.settings.max_connections = 2;
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient first(world.port);
    PlainClient second(world.port);
    for (PlainClient* client : {&first, &second}) {
        REQUIRE(client->say(get()));
        CHECK(client->hear("|").find("200 OK") != std::string::npos);
    }
    PlainClient third(world.port);
    third.say(get());
    CHECK(third.hear_all().empty());
    CHECK(world.audit.has("too many connections"));
}

TEST_CASE("an idle connection is ended, and a head that does not come", "[egress]") {
    World world;
    world.settings.limits.idle_timeout = std::chrono::milliseconds(50);
    world.settings.limits.head_timeout = std::chrono::milliseconds(50);
    PlainServer origin(answer_with_target);
    world.start(origin.port);
    PlainClient idle(world.port);
    REQUIRE(idle.say(get()));
    CHECK(idle.hear_all().find("GET /things") != std::string::npos);
    PlainClient slow(world.port);
    REQUIRE(slow.say("GET / HTT"));
    CHECK(slow.hear_all().empty());
}
