#include "sidecar_world.hpp"
#include "unit/egress/intercept/tls_peers.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using namespace std::chrono_literals;
using Catch::Contains;
using opensandbox::test::Listener;

namespace {

constexpr std::string_view kVault =
    R"({"credentials":[{"name":"key","source":{"value":"s3cret-value"}}],)"
    R"("bindings":[{"name":"api","match":{"hosts":["good.test"]},)"
    R"("auth":{"type":"bearer","credential":"key"}}]})";

/// A TLS server outside, at 192.0.2.2 port 443, for good.test and evil.test.
class Origin {
  public:
    explicit Origin(const SidecarWorld& world)
        : listener_(world.topology.outside, "192.0.2.2", 443) {
        authority_.write_certificate(world.directory.path / "origin-ca.pem");
        SSL_CTX_use_certificate(context_.get(), identity_.certificate.get());
        SSL_CTX_use_PrivateKey(context_.get(), identity_.key.get());
    }

    /// Takes connections until one brings a request; what came, all of them. Empty when it ends
    /// without a request.
    std::string serve_one() {
        while (true) {
            const UniqueFd peer = listener_.accept();
            limit_waiting(peer.get());
            const std::unique_ptr<SSL, OpensslDeleter<SSL_free>> session(SSL_new(context_.get()));
            SSL_set_fd(session.get(), peer.get());
            if (SSL_accept(session.get()) != 1) continue;
            const std::string request = hear(session.get(), "\r\n\r\n");
            if (request.empty()) continue;
            say(session.get(),
                "HTTP/1.1 200 OK\r\nX-Echo: s3cret-value\r\nContent-Length: 2\r\n\r\nhi");
            SSL_shutdown(session.get());
            return request;
        }
    }

  private:
    Identity authority_ = issue("origin authority", "", nullptr);
    Identity identity_ = issue("good.test", "DNS:good.test,DNS:evil.test", &authority_);
    std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context_{
        SSL_CTX_new(TLS_server_method())};
    Listener listener_;
};

/// What a client in the sandbox gets that trusts one file and sends a name; or why nothing.
std::string fetch(const SidecarWorld& world, const std::filesystem::path& trusted,
                  const std::string& name, const std::string& host) {
    const UniqueFd fd = opensandbox::test::start_connect(world.topology.box, "192.0.2.2", 443);
    opensandbox::test::wait_for(fd.get(), POLLOUT);
    ::fcntl(fd.get(), F_SETFL, 0);
    limit_waiting(fd.get());
    const std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context(
        SSL_CTX_new(TLS_client_method()));
    SSL_CTX_load_verify_file(context.get(), trusted.c_str());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    const std::unique_ptr<SSL, OpensslDeleter<SSL_free>> session(SSL_new(context.get()));
    SSL_set_fd(session.get(), fd.get());
    SSL_set_tlsext_host_name(session.get(), name.c_str());
    SSL_set1_host(session.get(), name.c_str());
    if (SSL_connect(session.get()) != 1) return "no handshake";
    say(session.get(), "GET /x HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    return hear(session.get(), "no such end");
}

/// Waits for a thread while the loop goes on.
template <class T>
Awaitable<T> finished(std::future<T>& running) {
    while (running.wait_for(0s) != std::future_status::ready)
        co_await net::sleep_for(5ms);
    co_return running.get();
}

struct TlsWorld : SidecarWorld {
    TlsWorld() {
        adjust = [this](SidecarSettings& settings) {
            settings.options.intercept = true;
            settings.options.token = "t";
            settings.options.upstream_extra_ca = directory.path / "origin-ca.pem";
            settings.options.rules = R"({"egress":[{"action":"allow","target":"good.test"}]})";
            settings.options.pass_through = passed;
        };
    }
    Awaitable<std::string> fetched(std::filesystem::path trusted, std::string name,
                                   std::string host) {
        auto running =
            std::async(std::launch::async, [=, this] { return fetch(*this, trusted, name, host); });
        co_return co_await finished(running);
    }
    static Awaitable<std::string> put_vault(std::uint16_t port) {
        const std::string bytes =
            "POST /credential-vault HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            "OPENSANDBOX-EGRESS-AUTH: t\r\nContent-Length: " +
            std::to_string(kVault.size()) + "\r\n\r\n" + std::string(kVault);
        std::string answer = co_await http::test::talk(port, bytes);
        CHECK(breach_of_contract("POST", "/credential-vault", answer) == "");
        co_return answer;
    }

    std::vector<std::string> passed;
    Origin origin{*this};
    std::filesystem::path own = directory.path / "shared" / "ca.pem";
    std::filesystem::path theirs = directory.path / "origin-ca.pem";
};

}  // namespace

TEST_CASE("TLS is intercepted: credentials go out, secrets do not come back, fronting fails",
          "[egress]") {
    TlsWorld world;
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        auto resolver = co_await start_resolver();
        CHECK_THAT(co_await TlsWorld::put_vault(sidecar.port()), Contains("201 Created"));
        CHECK(co_await query("good") == 0);
        auto served = std::async(std::launch::async, [&] { return world.origin.serve_one(); });
        // The name of the connection is allowed, that of the request is not.
        const std::string fronted = co_await world.fetched(world.own, "good.test", "evil.test");
        CHECK_THAT(fronted, Catch::StartsWith("HTTP/1.1 4") && !Contains("200 OK"));
        // A name at an allowed address that is not allowed itself.
        CHECK(co_await world.fetched(world.own, "evil.test", "good.test") == "no handshake");
        // The server's own certificate is not shown: somebody stands in between.
        CHECK(co_await world.fetched(world.theirs, "good.test", "good.test") == "no handshake");

        const std::string answer = co_await world.fetched(world.own, "good.test", "good.test");
        CHECK_THAT(answer, Contains("200 OK") && Contains("hi") && Contains("[REDACTED]") &&
                               !Contains("s3cret"));
        // Of all that was tried this is the first request that arrived.
        const std::string request = co_await finished(served);
        CHECK_THAT(request, Contains("GET /x HTTP/1.1") && Contains("Host: good.test") &&
                                Contains("Authorization: Bearer s3cret-value"));
        resolver->close();
    });
}

TEST_CASE("names of the pass-through list are not intercepted and get no credentials", "[egress]") {
    TlsWorld world;
    world.passed = {"*.other.test", "^good\\.test:443$"};
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        auto resolver = co_await start_resolver();
        const std::string refused = co_await TlsWorld::put_vault(sidecar.port());
        CHECK_THAT(refused, Contains("400") && Contains("not intercepted"));
        CHECK(co_await query("good") == 0);
        auto served = std::async(std::launch::async, [&] { return world.origin.serve_one(); });
        CHECK(co_await world.fetched(world.own, "good.test", "good.test") == "no handshake");
        const std::string answer = co_await world.fetched(world.theirs, "good.test", "good.test");
        CHECK_THAT(answer, Contains("200 OK") && Contains("s3cret-value"));
        CHECK_THAT(co_await finished(served), !Contains("Authorization"));
        // What is denied stays denied.
        CHECK(co_await world.fetched(world.theirs, "evil.test", "evil.test") == "no handshake");
        resolver->close();
    });
}

TEST_CASE("where a vault must be written safely, plain HTTP from elsewhere is not taken",
          "[egress]") {
    TlsWorld world;
    world.adjust = [before = world.adjust](SidecarSettings& settings) {
        before(settings);
        settings.options.vault_requires_tls = true;
        settings.options.http.address.reset();
    };
    const auto from_outside = [&](std::uint16_t port, std::string more) {
        const UniqueFd fd =
            opensandbox::test::start_connect(world.topology.outside, "172.30.0.2", port);
        opensandbox::test::wait_for(fd.get(), POLLOUT);
        ::fcntl(fd.get(), F_SETFL, 0);
        limit_waiting(fd.get());
        const std::string bytes =
            "POST /credential-vault HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + more +
            "OPENSANDBOX-EGRESS-AUTH: t\r\nContent-Length: " + std::to_string(kVault.size()) +
            "\r\n\r\n" + std::string(kVault);
        (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        std::string answer(65536, '\0');
        const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL);
        answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        CHECK(breach_of_contract("POST", "/credential-vault", answer) == "");
        return answer;
    };
    const std::string forwarded = "X-Forwarded-Proto: https\r\n";
    for (const bool trusted : {false, true}) {
        world.adjust = [before = world.adjust, trusted](SidecarSettings& settings) {
            before(settings);
            if (trusted) {
                settings.options.vault_trusted_proxies = {
                    net::AddressBlock::parse("172.30.0.1").value()};
            }
        };
        world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
            for (const std::string& more : {std::string(), forwarded}) {
                auto running = std::async(std::launch::async,
                                          [&] { return from_outside(sidecar.port(), more); });
                const std::string answer = co_await finished(running);
                const bool taken = trusted && !more.empty();
                CHECK_THAT(answer, Contains(taken ? "201 Created" : "426"));
            }
            if (!trusted) {
                CHECK_THAT(co_await TlsWorld::put_vault(sidecar.port()), Contains("201 Created"));
            }
        });
    }
}
