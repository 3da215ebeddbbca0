#include "egress/intercept/trust.hpp"

#include "egress/intercept/certificate_authority.hpp"
#include "egress/intercept/java_key_store.hpp"
#include "egress/intercept/java_trust_store.hpp"
#include "support/catch_result.hpp"
#include "tls_peers.hpp"

#include <openssl/pkcs12.h>

#include <map>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

std::string pem_of(const Identity& identity) {
    std::unique_ptr<BIO, OpensslDeleter<BIO_free>> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), identity.certificate.get());
    char* data = nullptr;
    long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

ReadImageFile image(std::map<std::string, std::string> files) {
    return [files = std::move(files)](std::string_view path) -> std::optional<std::string> {
        auto found = files.find(std::string(path));
        if (found == files.end()) return std::nullopt;
        return found->second;
    };
}

std::string file(const TrustPackage& package, const std::string& name) {
    for (const auto& each : package.files) {
        if (each.name == name) return each.content;
    }
    FAIL("no file " + name);
    return {};
}

}  // namespace

TEST_CASE("a sandbox trusts its image's roots and the authority", "[egress]") {
    auto authority = CertificateAuthority::make();
    REQUIRE(authority);
    std::string one = pem_of(issue("root one", "", nullptr));
    std::string two = pem_of(issue("root two", "", nullptr));
    auto package =
        make_trust_package(authority->certificate_pem(),
                           image({{"/etc/ssl/certs/ca-certificates.crt", "not a bundle"},
                                  {"/etc/ssl/cert.pem", "# One\n" + one + "\n# Two\n" + two}}),
                           "/trust");
    REQUIRE(package);
    CHECK(package->roots_from == "/etc/ssl/cert.pem");
    CHECK(file(*package, "ca.pem") == authority->certificate_pem());
    CHECK(file(*package, "bundle.pem") == one + two + authority->certificate_pem());
    std::map<std::string, std::string> variables(package->environment.begin(),
                                                 package->environment.end());
    CHECK(variables["SSL_CERT_FILE"] == "/trust/bundle.pem");
    CHECK(variables["REQUESTS_CA_BUNDLE"] == "/trust/bundle.pem");
    CHECK(variables["NODE_EXTRA_CA_CERTS"] == "/trust/ca.pem");
    CHECK(variables["JAVA_TOOL_OPTIONS"].find("/trust/truststore.p12") != std::string::npos);
    CHECK(file(*package, "apt.conf").find("\"/trust/bundle.pem\"") != std::string::npos);
}

TEST_CASE("an image without roots trusts the authority alone", "[egress]") {
    auto authority = CertificateAuthority::make();
    REQUIRE(authority);
    auto package = make_trust_package(authority->certificate_pem(), image({}), "/trust");
    REQUIRE(package);
    CHECK(package->roots_from.empty());
    CHECK(file(*package, "bundle.pem") == authority->certificate_pem());
    CHECK_FALSE(make_trust_package("nothing", image({}), "/trust"));
}

TEST_CASE("certifi's bundle comes before the system's", "[egress]") {
    auto authority = CertificateAuthority::make();
    REQUIRE(authority);
    std::string one = pem_of(issue("root one", "", nullptr));
    std::string two = pem_of(issue("root two", "", nullptr));
    auto package = make_trust_package(
        authority->certificate_pem(),
        image({{"/etc/ssl/certs/ca-certificates.crt", one}, {"/certifi/cacert.pem", two}}),
        "/trust", {"/certifi/cacert.pem"});
    REQUIRE(package);
    CHECK(package->roots_from == "/certifi/cacert.pem");
}

TEST_CASE("the store for Java holds every root, marked as trusted", "[egress]") {
    std::string text = pem_of(issue("root one", "", nullptr)) +
                       "-----BEGIN CERTIFICATE-----\nbad\n" + "-----END CERTIFICATE-----\n" +
                       pem_of(issue("root two", "", nullptr));
    auto roots = read_certificates(text);
    REQUIRE(roots.size() == 2);
    auto store = make_java_trust_store(roots, "changeit");
    REQUIRE(store);
    const auto* bytes = reinterpret_cast<const unsigned char*>(store->data());
    std::unique_ptr<PKCS12, OpensslDeleter<PKCS12_free>> parsed(
        d2i_PKCS12(nullptr, &bytes, static_cast<long>(store->size())));
    REQUIRE(parsed);
    CHECK(PKCS12_verify_mac(parsed.get(), "changeit", -1) == 1);
    CHECK(PKCS12_verify_mac(parsed.get(), "wrong", -1) == 0);
    // 2.16.840.1.113894.746875.1.1, once for each.
    const std::string mark("\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01", 14);
    std::size_t marks = 0;
    for (std::size_t at = 0; (at = store->find(mark, at)) != std::string::npos; ++at)
        ++marks;
    CHECK(marks == 2);
    for (const auto& root : roots)
        CHECK(java_store_holds(*store, root));
    const auto other = read_certificates(pem_of(issue("root one", "", nullptr)));
    CHECK_FALSE(java_store_holds(*store, other.front()));
    CHECK_FALSE(java_store_holds("", other.front()));
}

TEST_CASE("a store of Java's that is not understood is not written", "[egress]") {
    const auto own = read_certificates(pem_of(issue("interceptor", "", nullptr)));
    const auto now = std::chrono::system_clock::now();
    // Of no entries, sealed by "changeit".
    const std::string empty(
        "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\0"
        "\xe2\x68\x6e\x45\xfb\x43\xdf\xa4\xd9\x92"
        "\xdd\x41\xce\xb6\xb2\x1c\x63\x30\xd7\x92",
        32);
    const auto made = add_to_java_store(empty, own.front(), "a", "changeit", now);
    REQUIRE(made);
    CHECK(java_store_holds(*made, own.front()));
    CHECK(made->substr(0, 12) == std::string("\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1", 12));
    CHECK(add_to_java_store(*made, own.front(), "b", "changeit", now));
    CHECK_FALSE(add_to_java_store(empty, own.front(), "a", "another", now));
    for (std::size_t size = 0; size < made->size(); size += 7)
        CHECK_FALSE(add_to_java_store(made->substr(0, size), own.front(), "a", "changeit", now));
    std::string damaged = *made;
    damaged[20] ^= 1;
    CHECK_FALSE(add_to_java_store(damaged, own.front(), "a", "changeit", now));
}
