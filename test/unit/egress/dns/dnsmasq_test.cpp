// A real resolver behind the proxy.
#include "dns_fixture.hpp"

#include <sys/wait.h>

#include <csignal>
#include <spawn.h>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

constexpr const char* kProgram = "/usr/sbin/dnsmasq";

/// dnsmasq on a port of loopback, with no upstream of its own.
class Dnsmasq {
  public:
    Dnsmasq(std::uint16_t port, const std::vector<std::string>& options) {
        std::vector<std::string> words{kProgram,
                                       "--keep-in-foreground",
                                       "--conf-file=/dev/null",
                                       "--no-resolv",
                                       "--no-hosts",
                                       "--user=root",
                                       "--pid-file=",
                                       "--bind-interfaces",
                                       "--listen-address=127.0.0.1",
                                       "--log-facility=/dev/null",
                                       "--port=" + std::to_string(port)};
        words.insert(words.end(), options.begin(), options.end());
        std::vector<char*> arguments;
        for (std::string& word : words)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        REQUIRE(::posix_spawn(&pid_, kProgram, nullptr, nullptr, arguments.data(), environ) == 0);
    }
    ~Dnsmasq() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Dnsmasq(const Dnsmasq&) = delete;
    Dnsmasq& operator=(const Dnsmasq&) = delete;
    [[nodiscard]] bool running() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

  private:
    pid_t pid_ = -1;
};

/// One that nothing holds just now, for UDP and TCP.
std::uint16_t free_port(Loop& loop) {
    for (int attempt = 0; attempt < 16; ++attempt) {
        const udp::socket taken(loop.executor(), udp::endpoint(address("127.0.0.1"), 0));
        const std::uint16_t port = taken.local_endpoint().port();
        if (net::listen_tcp(loop.executor(), "127.0.0.1", port)) return port;
    }
    FAIL("no port is free");
    return 0;
}

}  // namespace

TEST_CASE("dns proxy: before a real resolver: addresses, aliases, absence, long texts, IPv6") {
    ProxyFixture f;
    const std::uint16_t port = free_port(f.loop);
    std::vector<std::string> options{"--local=/test/",
                                     "--host-record=web.test,198.51.100.1,2001:db8::1,120",
                                     "--cname=www.test,web.test",
                                     "--host-record=rebind.test,127.0.0.1",
                                     "--mx-host=test,mail.test,10",
                                     "--local-ttl=120"};
    for (int i = 0; i < 12; ++i)
        options.push_back("--txt-record=long.test," + std::string(200, static_cast<char>('a' + i)));
    const Dnsmasq server(port, options);
    f.settings.upstream.servers.emplace_back(udp::endpoint(address("127.0.0.1"), port));
    f.loop.run([&]() -> Awaitable<void> {
        const udp::endpoint there(address("127.0.0.1"), port);
        std::string up;
        while (up.empty()) {
            REQUIRE(server.running());
            up = co_await ask_udp(there, query("web.test"), std::chrono::milliseconds(100));
            if (up.empty()) co_await net::sleep_for(std::chrono::milliseconds(20));
        }
        f.start();
        const std::string four = co_await ask_udp(f.endpoint, query("web.test"));
        CHECK(addresses(four) == std::vector<std::string>{"198.51.100.1"});
        const std::string six = co_await ask_udp(f.endpoint, query("web.test", codec::kTypeAaaa));
        CHECK(addresses(six) == std::vector<std::string>{"2001:db8::1"});
        const std::string alias = co_await ask_udp(f.endpoint, query("www.test"));
        CHECK(addresses(alias) == std::vector<std::string>{"198.51.100.1"});
        CHECK(parsed(alias).answers.size() == 2);
        CHECK(parsed(co_await ask_udp(f.endpoint, query("none.test"))).code == 3);
        CHECK(parsed(co_await ask_udp(f.endpoint, query("rebind.test"))).code == 3);
        const auto mail = parsed(co_await ask_udp(f.endpoint, query("test", codec::kTypeMx)));
        REQUIRE(mail.answers.size() == 1);
        CHECK(mail.answers[0].data == std::string("\0\12", 2) + wire("mail.test"));
        const std::string text = query("long.test", codec::kTypeTxt);
        CHECK(parsed(co_await ask_udp(f.endpoint, text)).truncated);
        CHECK(parsed(co_await ask_tcp(f.endpoint, text)).answers.size() == 12);
    });
    CHECK(f.denials.size() == 1);
    CHECK(f.sink->calls.size() == 3);
}
