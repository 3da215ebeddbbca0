#include "support/catch_result.hpp"
#include "support/tls_server.hpp"
#include "trust/certificates.hpp"
#include "trust/java_trust_store.hpp"

#include <catch2/catch.hpp>
#include <openssl/pkcs12.h>

using namespace opensandbox;
using namespace opensandbox::trust;
using namespace opensandbox::test_support;

namespace {

std::string pem_of(const Identity& identity) {
    std::unique_ptr<BIO, OpensslDeleter<BIO_free>> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), identity.certificate.get());
    char* data = nullptr;
    long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

}  // namespace

TEST_CASE("the store for Java holds every root, marked as trusted", "[trust]") {
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

TEST_CASE("a store of Java's that is not understood is not written", "[trust]") {
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
