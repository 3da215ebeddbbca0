#include "egress/intercept/tls/client_hello.hpp"

#include "egress/intercept/core/host_name.hpp"
#include "hello_bytes.hpp"
#include "tls_peers.hpp"

#include <openssl/err.h>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using State = ClientHelloParser::State;

namespace {

/// What OpenSSL's client says first.
std::string real_hello(const std::string& name, const std::vector<std::string>& protocols) {
    std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context(
        SSL_CTX_new(TLS_client_method()));
    std::unique_ptr<SSL, OpensslDeleter<SSL_free>> session(SSL_new(context.get()));
    BIO* in = BIO_new(BIO_s_mem());
    BIO* out = BIO_new(BIO_s_mem());
    SSL_set_bio(session.get(), in, out);
    if (!name.empty()) SSL_set_tlsext_host_name(session.get(), name.c_str());
    std::string wire = wire_list(protocols);
    if (!wire.empty()) {
        SSL_set_alpn_protos(session.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                            static_cast<unsigned>(wire.size()));
    }
    SSL_connect(session.get());
    ERR_clear_error();
    char* data = nullptr;
    long size = BIO_get_mem_data(out, &data);
    return {data, static_cast<std::size_t>(size)};
}

State parse(const std::string& bytes, ClientHelloParser& parser) {
    return parser.parse(bytes);
}

}  // namespace

TEST_CASE("a client's name and protocols are read from its hello", "[egress]") {
    ClientHelloParser parser;
    std::string hello = real_hello("Api.Example.com", {"h2", "http/1.1"});
    REQUIRE(parse(hello, parser) == State::complete);
    CHECK(parser.hello().server_name == "Api.Example.com");
    CHECK(parser.hello().protocols == std::vector<std::string>{"h2", "http/1.1"});
    CHECK_FALSE(parser.hello().encrypted);
    ClientHelloParser plain;
    REQUIRE(parse(real_hello("", {}), plain) == State::complete);
    CHECK_FALSE(plain.hello().server_name);
    CHECK(plain.hello().protocols.empty());
}

TEST_CASE("a hello may come in pieces of any size and in many records", "[egress]") {
    std::string whole = real_hello("api.example.com", {"h2"});
    std::string message = whole.substr(5);
    std::size_t size = GENERATE(1, 3, 100, 5000);
    std::string bytes;
    for (std::size_t at = 0; at < message.size(); at += size)
        bytes += record(message.substr(at, size));
    ClientHelloParser parser;
    for (std::size_t end = 1; end < bytes.size(); ++end)
        REQUIRE(parser.parse(bytes.substr(0, end)) == State::incomplete);
    REQUIRE(parser.parse(bytes) == State::complete);
    CHECK(parser.hello().server_name == "api.example.com");
}

TEST_CASE("GREASE is passed over, hidden names are noticed", "[egress]") {
    ClientHelloParser parser;
    std::string grease = extension(0x0a0a, "") + server_name("a.example.com") +
                         extension(0x1a1a, std::string(1, '\0'));
    REQUIRE(parse(record(hello_message(grease)), parser) == State::complete);
    CHECK(parser.hello().server_name == "a.example.com");
    CHECK_FALSE(parser.hello().encrypted);
    unsigned type = GENERATE(0xfe0d, 0xffce);
    ClientHelloParser hidden;
    REQUIRE(parse(record(hello_message(server_name("outer.example") + extension(type, "xyz"))),
                  hidden) == State::complete);
    CHECK(hidden.hello().encrypted);
}

TEST_CASE("what is no TLS is told apart at once", "[egress]") {
    std::string text = GENERATE("G", "GET / HTTP/1.1", "SSH-2.0-x", "\x80\x2e\x01", "\x15\x03\x01");
    ClientHelloParser parser;
    CHECK(parser.parse(text) == State::not_tls);
    ClientHelloParser begun;
    CHECK(begun.parse("\x16") == State::incomplete);
    CHECK(begun.parse("\x16\x04") == State::not_tls);
}

TEST_CASE("a broken hello is refused", "[egress]") {
    std::string name = server_name("a.example.com");
    std::string two_names = extension(0, counted(2, std::string(1, '\0') + counted(2, "a.b") +
                                                        std::string(1, '\0') + counted(2, "c.d")));
    std::string good = hello_message(name);
    std::string cut = good;
    cut[3] = static_cast<char>(cut[3] - 5);
    std::string other_message = good;
    other_message[0] = 2;
    std::string bytes = GENERATE_COPY(
        record(hello_message(name + name)), record(hello_message(two_names)),
        record(hello_message(server_name(""))), record(hello_message(server_name("a b"))),
        record(hello_message(server_name(std::string("a\0b", 3)))),
        record(hello_message(extension(0, ""))), record(hello_message(extension(16, "\x01"))),
        record(hello_message(extension(16, counted(2, counted(1, ""))))),
        record(hello_message("\x01")), record(hello_message(name) + "x"), record(cut),
        record(other_message), std::string("\x16\x03\x01\x00\x00", 5),
        std::string("\x16\x03\x01\x40\x01", 5),
        record(good.substr(0, 10)) + std::string("\x17\x03\x03\x00\x01x", 6),
        record(std::string("\x01\x00\x40\x01", 4)));
    ClientHelloParser parser;
    CHECK(parser.parse(bytes) == State::malformed);
    CHECK_FALSE(parser.error().empty());
}

TEST_CASE("a hello has a limit", "[egress]") {
    std::string bytes;
    std::string start("\x01\x00\x3f\xff", 4);
    bytes += record(start);
    while (bytes.size() < ClientHelloParser::kMaxBytes)
        bytes += record("x");
    ClientHelloParser parser;
    CHECK(parser.parse(bytes) == State::malformed);
}

TEST_CASE("names have one form for all comparisons", "[egress]") {
    CHECK(normal_host_name("Api.Example.COM.") == "api.example.com");
    CHECK(normal_host_name("_dmarc.example.com") == "_dmarc.example.com");
    CHECK(normal_host_name("localhost") == "localhost");
    for (std::string bad :
         {"", ".", "a..b", ".a", "a b", "*.example.com", "a/b", "1.2.3.4", "127.1", "2130706433",
          "0x7f000001", "a\xc3\xa4.com", "a.com:80", "[::1]"}) {
        INFO(bad);
        CHECK_FALSE(normal_host_name(bad));
    }
    CHECK_FALSE(normal_host_name(std::string(64, 'a') + ".com"));
    std::string long_name;
    for (int i = 0; i < 64; ++i)
        long_name += "abc.";
    CHECK_FALSE(normal_host_name(long_name + "com"));
}

TEST_CASE("the host of a request is read strictly", "[egress]") {
    auto named = parse_authority("API.example.com:8443");
    REQUIRE(named);
    CHECK(named->host == "api.example.com");
    CHECK(named->port == 8443);
    CHECK_FALSE(named->is_address);
    auto v6 = parse_authority("[2001:DB8::1]");
    REQUIRE(v6);
    CHECK(v6->host == "2001:db8::1");
    CHECK(v6->is_address);
    CHECK_FALSE(v6->port);
    CHECK(parse_authority("1.2.3.4:80")->is_address);
    for (std::string bad :
         {"", ":80", "a:", "a:0", "a:65536", "a:+1", "a:80x", "user@a", "a,b", "[::1", "[::1]x",
          "[1.2.3.4]", "::1", "[fe80::1%25eth0]", "a b", "a/"}) {
        INFO(bad);
        CHECK_FALSE(parse_authority(bad));
    }
    CHECK(host_and_port("::1", 443) == "[::1]:443");
}
