#include "interception_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

/// A proxy that speaks TLS itself, answers CONNECT with `answer`, and pipes when that is a success.
TlsServer::Script connect_proxy(std::string answer, std::function<std::uint16_t()> target,
                                std::promise<std::string>* seen) {
    return [=](SSL* session) {
        std::string head = hear(session, "\r\n\r\n");
        if (seen != nullptr) seen->set_value(head);
        say(session, answer);
        if (answer.find(" 200 ") == std::string::npos) return;
        forward_to([=] { return dial_loopback(target()); })(session);
    };
}

/// The same without TLS.
class PlainProxy {
  public:
    PlainProxy(std::string answer, std::uint16_t target) : listener_(listen_loopback(port)) {
        thread_ = std::thread([this, answer, target] {
            UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!client) return;
            limit_waiting(client.get());
            char byte = 0;
            while (head.find("\r\n\r\n") == std::string::npos &&
                   ::recv(client.get(), &byte, 1, 0) == 1)
                head += byte;
            ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
            if (answer.find(" 200 ") == std::string::npos) return;
            UniqueFd server = dial_loopback(target);
            pipe(client.get(), server.get());
        });
    }
    ~PlainProxy() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        thread_.join();
    }
    void join() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
        thread_ = std::thread([] {});
    }

    std::uint16_t port = 0;
    std::string head;

  private:
    static void pipe(int a, int b) {
        std::array<char, 16384> piece{};
        while (true) {
            std::array<pollfd, 2> ready{{{a, POLLIN, 0}, {b, POLLIN, 0}}};
            if (::poll(ready.data(), ready.size(), 10'000) <= 0) return;
            for (int i : {0, 1}) {
                if (ready[static_cast<std::size_t>(i)].revents == 0) continue;
                ssize_t count = ::recv(i == 0 ? a : b, piece.data(), piece.size(), 0);
                if (count <= 0) return;
                ::send(i == 0 ? b : a, piece.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL);
            }
        }
    }

    UniqueFd listener_;
    std::thread thread_;
};

}  // namespace

TEST_CASE("an upstream proxy is named strictly", "[egress]") {
    auto proxy = parse_upstream_proxy("http://proxy.example.com:3128", "Basic abc");
    REQUIRE(proxy);
    CHECK(proxy->host == "proxy.example.com");
    CHECK(proxy->port == 3128);
    CHECK_FALSE(proxy->tls);
    CHECK(parse_upstream_proxy("https://10.0.0.1", "")->port == 443);
    CHECK(parse_upstream_proxy("http://10.0.0.1/", "")->port == 80);
    for (std::string bad : {"", "proxy:80", "socks5://proxy", "http://", "http://u:p@proxy",
                            "http://proxy/path", "http://proxy:0"})
        CHECK_FALSE(parse_upstream_proxy(bad, ""));
    CHECK_FALSE(parse_upstream_proxy("http://proxy", "a\r\nX: b"));
}

TEST_CASE("with an upstream proxy every connection goes through it", "[egress]") {
    World world;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("through"); }));
    PlainProxy proxy("HTTP/1.1 200 Connection established\r\n\r\n", origin.port);
    world.settings.dial.proxy =
        *parse_upstream_proxy("http://127.0.0.1:" + std::to_string(proxy.port), "Basic c2VjcmV0");
    // Nothing listens where the client wants to go: only the proxy knows the way.
    std::uint16_t nobody = 0;
    {
        UniqueFd closed = listen_loopback(nobody);
    }
    world.start(nobody);
    {
        auto client = world.client();
        REQUIRE(client.connect());
        REQUIRE(client.say(get()));
        CHECK(client.hear("through").find("200 OK") != std::string::npos);
    }
    world.stop();
    proxy.join();
    std::string target = "api.example.com:" + std::to_string(nobody);
    CHECK(proxy.head.find("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n") == 0);
    CHECK(proxy.head.find("Proxy-Authorization: Basic c2VjcmV0\r\n") != std::string::npos);
}

TEST_CASE("an upstream proxy may speak TLS itself", "[egress]") {
    World world;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("nested"); }));
    std::promise<std::string> seen;
    TlsServer proxy(world.origin("DNS:localhost,IP:127.0.0.1"),
                    connect_proxy("HTTP/1.1 200 OK\r\n\r\n", [&] { return origin.port; }, &seen));
    world.settings.dial.proxy =
        *parse_upstream_proxy("https://127.0.0.1:" + std::to_string(proxy.port), "");
    world.settings.dial.proxy_tls.ca_file = (world.scratch.path / "origins.pem").string();
    world.start(1);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say(get()));
    CHECK(client.hear("nested").find("200 OK") != std::string::npos);
    CHECK(seen.get_future().get().find("CONNECT api.example.com:1 HTTP/1.1\r\n") == 0);
}

TEST_CASE("an upstream proxy that refuses or is away fails the request", "[egress]") {
    World world;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("leaked"); }));
    std::string answer =
        GENERATE("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "SSH-2.0-x\r\n\r\n", "",
                 "HTTP/1.1 200 OK\r\n\r\nunasked", "away");
    std::optional<PlainProxy> proxy;
    std::uint16_t port = 1;
    if (answer != "away") {
        proxy.emplace(answer, origin.port);
        port = proxy->port;
    }
    world.settings.dial.proxy =
        *parse_upstream_proxy("http://127.0.0.1:" + std::to_string(port), "");
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say("GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"));
    std::string told = client.hear_all();
    CHECK(told.find("HTTP/1.1 502 ") == 0);
    CHECK(told.find("leaked") == std::string::npos);
}

TEST_CASE("sockets are prepared before they connect, or do not connect", "[egress]") {
    World world;
    std::atomic<int> prepared{0};
    bool refuse = GENERATE(false, true);
    world.settings.dial.prepare_socket = [&](int fd, ClientId client) -> Status {
        sockaddr_in peer{};
        socklen_t size = sizeof(peer);
        bool fresh = ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0;
        if (fresh && client == 7) ++prepared;
        if (refuse) return Error(ErrorCode::permission_denied, "no mark for it");
        return {};
    };
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("marked"); }));
    world.start(origin.port);
    auto client = world.client();
    REQUIRE(client.connect());
    REQUIRE(client.say("GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"));
    CHECK(client.hear_all().find(refuse ? "HTTP/1.1 502 " : "HTTP/1.1 200 ") == 0);
    CHECK(prepared == 1);
}
