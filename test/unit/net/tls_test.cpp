#include "net/tls.hpp"

#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"
#include "support/tls_server.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace opensandbox;
using namespace std::chrono_literals;
using test_support::Identity;
using test_support::issue;
using test_support::Loop;
using test_support::TlsServer;

namespace {

struct Authority {
    Authority() { root.write_certificate(ca_file); }

    [[nodiscard]] net::TlsSettings trusting() const {
        net::TlsSettings settings;
        settings.ca_file = ca_file;
        return settings;
    }
    /// Writes a client's files and adds them.
    [[nodiscard]] net::TlsSettings presenting(const Identity& client) const {
        net::TlsSettings settings = trusting();
        settings.cert_file = directory.path / "cert.pem";
        settings.key_file = directory.path / "key.pem";
        client.write_certificate(settings.cert_file);
        client.write_key(settings.key_file);
        return settings;
    }

    test_support::ScratchDirectory directory;
    Identity root = issue("test authority", "", nullptr);
    std::string ca_file = directory.path / "ca.pem";
    Identity server = issue("server", "IP:127.0.0.1,DNS:localhost", &root);
};

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The same with the texts of the files in place of the files.
net::TlsSettings in_texts(const net::TlsSettings& files) {
    net::TlsSettings texts;
    texts.ca_pem = text_of(files.ca_file);
    if (!files.cert_file.empty()) texts.cert_pem = text_of(files.cert_file);
    if (!files.key_file.empty()) texts.key_pem = text_of(files.key_file);
    return texts;
}

/// Reads `size` bytes, then answers with as many.
void echo_size(SSL* session, std::size_t size) {
    std::string piece(5000, '\0');
    std::size_t received = 0;
    while (received < size) {
        int count = SSL_read(session, piece.data(), static_cast<int>(piece.size()));
        if (count <= 0) return;
        received += static_cast<std::size_t>(count);
    }
    std::string answer(size, 'a');
    SSL_write(session, answer.data(), static_cast<int>(answer.size()));
    SSL_shutdown(session);
}

using Connected = Result<std::unique_ptr<net::Stream>>;

/// What connecting to a port of loopback fails with.
Error refusal(Loop& loop, const net::TlsSettings& settings, std::uint16_t port,
              const std::string& host = "127.0.0.1", std::chrono::milliseconds timeout = 5s) {
    Error error;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(settings);
        auto stream = co_await client.connect(host, port, timeout);
        REQUIRE_FALSE(stream);
        error = stream.error();
    });
    return error;
}

/// Sends a byte and reads; the first failure.
Awaitable<Status> exchange_byte(net::Stream& stream) {
    auto sent = co_await net::write_all(stream, "x");
    if (!sent) co_return sent.error();
    std::string piece(16, '\0');
    auto count = co_await stream.read_some(piece);
    if (!count) co_return count.error();
    if (*count == 0) co_return Error(ErrorCode::io, "ended");
    co_return Status();
}

}  // namespace

TEST_CASE("bytes go both ways over TLS, and its end is seen") {
    Authority authority;
    constexpr std::size_t kSize = 3'000'000;
    TlsServer server(authority.server, [](SSL* session) { echo_size(session, kSize); });
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(authority.trusting());
        auto stream = co_await client.connect("127.0.0.1", server.port, 5s);
        REQUIRE(stream);
        CHECK((*stream)->peer_address() == "127.0.0.1");
        std::string large(kSize - 11, 'x');
        std::array<std::string_view, 4> pieces{"hello", "", large, " world"};
        auto sent = co_await (*stream)->write_all(pieces);
        REQUIRE(sent);
        std::size_t received = 0;
        std::string piece(70'000, '\0');
        while (true) {
            auto count = co_await (*stream)->read_some(piece);
            REQUIRE(count);
            if (*count == 0) break;
            received += *count;
        }
        CHECK(received == kSize);
    });
}

TEST_CASE("the server is told the name that is asked for") {
    Authority authority;
    std::string asked;
    TlsServer server(authority.server, [&](SSL* session) {
        const char* name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name);
        asked = name == nullptr ? "" : name;
        echo_size(session, 1);
    });
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(authority.trusting());
        auto stream = co_await client.connect("localhost", server.port, 5s);
        REQUIRE(stream);
        auto answered = co_await exchange_byte(**stream);
        CHECK(answered);
    });
    CHECK(asked == "localhost");
}

TEST_CASE("a server whose certificate does not hold is refused before a byte is sent") {
    Authority authority;
    Identity stranger = issue("other authority", "", nullptr);
    Identity forged = issue("server", "IP:127.0.0.1", &stranger);
    Identity renamed = issue("server", "DNS:other.example", &authority.root);
    bool name = GENERATE(false, true);
    TlsServer server(name ? renamed : forged, [](SSL* session) { echo_size(session, 1); });
    Loop loop;
    Error error = refusal(loop, authority.trusting(), server.port);
    CHECK(error.code() == ErrorCode::unavailable);
    CHECK(error.message().find("the server's certificate does not hold: ") != std::string::npos);
    if (name) CHECK(error.message().find("IP address mismatch") != std::string::npos);

    net::TlsSettings blind = authority.trusting();
    blind.verify = false;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(blind);
        auto stream = co_await client.connect("127.0.0.1", server.port, 5s);
        CHECK(stream);
    });
}

TEST_CASE("the system's roots do not hold for an authority of one's own") {
    Authority authority;
    TlsServer server(authority.server, [](SSL* session) { echo_size(session, 1); });
    Loop loop;
    Error error = refusal(loop, net::TlsSettings(), server.port);
    CHECK(error.code() == ErrorCode::unavailable);
}

TEST_CASE("a server that wants a certificate gets ours, and refuses those who have none") {
    Authority authority;
    Identity clients = issue("client authority", "", nullptr);
    TlsServer server(authority.server, [](SSL* session) { echo_size(session, 1); }, &clients);
    Identity known = issue("client", "", &clients);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(authority.presenting(known));
        auto stream = co_await client.connect("127.0.0.1", server.port, 5s);
        REQUIRE(stream);
        auto answered = co_await exchange_byte(**stream);
        CHECK(answered);

        net::TlsClient nobody(authority.trusting());
        auto refused = co_await nobody.connect("127.0.0.1", server.port, 5s);
        Status outcome;
        if (!refused) outcome = refused.error();
        if (refused) outcome = co_await exchange_byte(**refused);
        REQUIRE_FALSE(outcome);
        CHECK(outcome.error().message().find("certificate required") != std::string::npos);
    });
}

TEST_CASE("files that cannot serve are named at their first use and not before") {
    Authority authority;
    Identity client = issue("client", "", &authority.root);
    Identity other = issue("other", "", &authority.root);
    net::TlsSettings settings = authority.presenting(client);
    std::string wrong;
    SECTION("no CA file") {
        settings.ca_file = wrong = "/nonexistent/ca.pem";
    }
    SECTION("a CA file that holds no certificate") {
        std::ofstream(authority.directory.path / "empty.pem") << "nothing\n";
        settings.ca_file = wrong = authority.directory.path / "empty.pem";
    }
    SECTION("no certificate") {
        settings.cert_file = wrong = "/nonexistent/cert.pem";
    }
    SECTION("a key of another certificate") {
        other.write_key(settings.key_file);
        wrong = settings.key_file;
    }
    SECTION("an encrypted key, whose password nobody can be asked for") {
        client.write_key(settings.key_file, "secret");
        wrong = settings.key_file;
    }
    SECTION("a certificate without its key") {
        settings.key_file.clear();
        wrong = "set together";
    }
    net::TlsClient tls(settings);
    auto ready = tls.prepare();
    REQUIRE_FALSE(ready);
    CHECK(ready.error().code() == ErrorCode::invalid_argument);
    CHECK(ready.error().message().find(wrong) != std::string::npos);
}

TEST_CASE("PEM texts serve in place of files, and before them") {
    Authority authority;
    Identity clients = issue("client authority", "", nullptr);
    TlsServer server(authority.server, [](SSL* session) { echo_size(session, 1); }, &clients);
    net::TlsSettings settings = in_texts(authority.presenting(issue("client", "", &clients)));
    // The authority is looked for among all that the text holds.
    const std::filesystem::path other = authority.directory.path / "other.pem";
    issue("other authority", "", nullptr).write_certificate(other);
    const std::string root = std::exchange(settings.ca_pem, text_of(other));
    settings.ca_file = settings.cert_file = settings.key_file = "/nonexistent/file.pem";
    Loop loop;
    CHECK(refusal(loop, settings, server.port).code() == ErrorCode::unavailable);
    settings.ca_pem += "between them\n" + root;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(settings);
        auto stream = co_await client.connect("127.0.0.1", server.port, 5s);
        REQUIRE(stream);
        auto answered = co_await exchange_byte(**stream);
        CHECK(answered);
    });
}

TEST_CASE("PEM texts that cannot serve are named and not shown") {
    Authority authority;
    Identity client = issue("client", "", &authority.root);
    const net::TlsSettings files = authority.presenting(client);
    net::TlsSettings settings = in_texts(files);
    std::string wrong;
    SECTION("no authority") {
        settings.ca_pem = "hunter2";
        wrong = "TLS: CA certificates: ";
    }
    SECTION("no certificate") {
        settings.cert_pem = "hunter2";
        wrong = "TLS: client certificate: ";
    }
    SECTION("no key") {
        settings.key_pem = "hunter2";
        wrong = "TLS: private key: ";
    }
    SECTION("a certificate in place of a key") {
        settings.key_pem = settings.cert_pem;
        wrong = "TLS: private key: ";
    }
    SECTION("a key of another certificate") {
        issue("other", "", &authority.root).write_key(files.key_file);
        settings.key_pem = text_of(files.key_file);
        wrong = "TLS: private key: ";
    }
    SECTION("an encrypted key, whose password nobody can be asked for") {
        client.write_key(files.key_file, "secret");
        settings.key_pem = text_of(files.key_file);
        wrong = "TLS: private key: ";
    }
    SECTION("a certificate without its key") {
        settings.key_pem.clear();
        wrong = "TLS: a client certificate and its key are set together";
    }
    SECTION("a key without its certificate") {
        settings.cert_pem.clear();
        wrong = "TLS: a client certificate and its key are set together";
    }
    auto ready = net::TlsClient(settings).prepare();
    REQUIRE_FALSE(ready);
    CHECK(ready.error().code() == ErrorCode::invalid_argument);
    CHECK_THAT(ready.error().message(), Catch::StartsWith(wrong));
    CHECK(ready.error().message().find("hunter2") == std::string::npos);
}

TEST_CASE("a certificate may have to name another server than the host that is dialled") {
    Authority authority;
    Identity named = issue("server", "DNS:api.internal", &authority.root);
    std::string asked;
    TlsServer server(named, [&](SSL* session) {
        const char* name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name);
        asked = name == nullptr ? "" : name;
        echo_size(session, 1);
    });
    net::TlsSettings settings = authority.trusting();
    Loop loop;
    CHECK(refusal(loop, settings, server.port).code() == ErrorCode::unavailable);
    settings.server_name = "other.internal";
    CHECK(refusal(loop, settings, server.port).code() == ErrorCode::unavailable);
    settings.server_name = "api.internal";
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(settings);
        auto stream = co_await client.connect("127.0.0.1", server.port, 5s);
        REQUIRE(stream);
        auto answered = co_await exchange_byte(**stream);
        CHECK(answered);
    });
    CHECK(asked == "api.internal");
}

TEST_CASE("clients that trust or are something else are not the same") {
    const auto identity = [](const net::TlsSettings& settings) {
        return net::TlsClient(settings).identity();
    };
    const net::TlsSettings plain;
    CHECK(identity(plain) == identity(plain));
    for (std::string net::TlsSettings::* member :
         {&net::TlsSettings::ca_file, &net::TlsSettings::cert_file, &net::TlsSettings::key_file,
          &net::TlsSettings::ca_pem, &net::TlsSettings::cert_pem, &net::TlsSettings::key_pem,
          &net::TlsSettings::server_name}) {
        net::TlsSettings changed;
        changed.*member = "x";
        CHECK(identity(changed) != identity(plain));
        net::TlsSettings moved;
        moved.ca_file = "x";
        if (member != &net::TlsSettings::ca_file) CHECK(identity(changed) != identity(moved));
    }
    net::TlsSettings blind;
    blind.verify = false;
    CHECK(identity(blind) != identity(plain));
}

TEST_CASE("a peer that speaks no TLS, or nothing at all, is given up") {
    Authority authority;
    Loop loop;
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    REQUIRE(listener);
    std::string greeting = GENERATE(as<std::string>(), "", "HTTP/1.1 400 Bad\r\n\r\n");
    std::vector<std::unique_ptr<net::Stream>> held;
    auto serve = [&]() -> Awaitable<void> {
        auto stream = co_await (*listener)->accept();
        if (!stream) co_return;
        co_await net::write_all(**stream, greeting);
        held.push_back(std::move(*stream));
    };
    net::spawn(loop.executor(), serve(), "plain server");
    auto timeout = greeting.empty() ? 50ms : 5000ms;
    Error error = refusal(loop, authority.trusting(), (*listener)->port(), "127.0.0.1", timeout);
    CHECK(error.code() == (greeting.empty() ? ErrorCode::timeout : ErrorCode::unavailable));
}

TEST_CASE("a connection that is cut is told from one that is ended") {
    Authority authority;
    TlsServer server(authority.server, [](SSL* session) {
        SSL_write(session, "half", 4);
        SSL_set_quiet_shutdown(session, 1);
    });
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(authority.trusting());
        auto stream = co_await client.connect("127.0.0.1", server.port, 5s);
        REQUIRE(stream);
        std::string piece(16, '\0');
        auto first = co_await (*stream)->read_some(piece);
        REQUIRE(first);
        CHECK(*first == 4);
        auto second = co_await (*stream)->read_some(piece);
        REQUIRE_FALSE(second);
        CHECK(second.error().code() == ErrorCode::io);
    });
}

TEST_CASE("a read over TLS can be broken off, and the connection be used on") {
    Authority authority;
    TlsServer server(authority.server, [](SSL* session) {
        echo_size(session, 1);
        char byte = 0;
        SSL_read(session, &byte, 1);
    });
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        net::TlsClient client(authority.trusting());
        auto connected = co_await client.connect("127.0.0.1", server.port, 5s);
        REQUIRE(connected);
        net::Stream& stream = **connected;
        std::string piece(16, '\0');
        net::Deadline breaker(loop.executor(), 20ms, [&] { stream.cancel_read(); });
        auto broken = co_await stream.read_some(piece);
        REQUIRE_FALSE(broken);
        CHECK(broken.error().code() == ErrorCode::cancelled);
        auto answered = co_await exchange_byte(stream);
        CHECK(answered);
        net::Deadline closer(loop.executor(), 20ms, [&] { stream.close(); });
        auto ended = co_await stream.read_some(piece);
        while (ended && *ended > 0)
            ended = co_await stream.read_some(piece);
        auto closed = co_await net::write_all(stream, "x");
        (void)closed;
        stream.close();
        auto after = co_await stream.read_some(piece);
        REQUIRE_FALSE(after);
        CHECK(after.error().code() == ErrorCode::cancelled);
        CHECK_FALSE(stream.quiet());
    });
}
