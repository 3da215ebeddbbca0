#include "egress/intercept/tls/certificate_authority.hpp"

#include "egress/intercept/tls/leaf_cache.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"
#include "tls_peers.hpp"

#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

mode_t mode_of(const std::filesystem::path& path) {
    struct stat status{};
    ::stat(path.c_str(), &status);
    return status.st_mode & 0777;
}

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Whether a client that trusts this authority alone takes the certificate for the name.
bool holds(const CertificateAuthority& authority, X509* leaf, const std::string& name) {
    std::unique_ptr<BIO, OpensslDeleter<BIO_free>> bio(BIO_new_mem_buf(
        authority.certificate_pem().data(), static_cast<int>(authority.certificate_pem().size())));
    Certificate root(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    std::unique_ptr<X509_STORE, OpensslDeleter<X509_STORE_free>> store(X509_STORE_new());
    X509_STORE_add_cert(store.get(), root.get());
    std::unique_ptr<X509_STORE_CTX, OpensslDeleter<X509_STORE_CTX_free>> check(
        X509_STORE_CTX_new());
    X509_STORE_CTX_init(check.get(), store.get(), leaf, nullptr);
    X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(check.get());
    X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_purpose(rules, X509_PURPOSE_SSL_SERVER);
    bool address = name.find_first_not_of("0123456789.:abcdef") == std::string::npos;
    if (address) {
        X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str());
    } else {
        X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size());
    }
    return X509_verify_cert(check.get()) == 1;
}

}  // namespace

TEST_CASE("an authority is made once and found again", "[egress]") {
    test_support::ScratchDirectory scratch;
    AuthorityFiles files{scratch.path / "ca.pem", scratch.path / "ca.key"};
    auto made = CertificateAuthority::load_or_make(files);
    REQUIRE(made);
    CHECK(mode_of(files.key) == 0600);
    CHECK(mode_of(files.certificate) == 0644);
    CHECK(content(files.certificate) == made->certificate_pem());
    auto found = CertificateAuthority::load_or_make(files);
    REQUIRE(found);
    CHECK(found->certificate_pem() == made->certificate_pem());
    auto leaf = found->issue("api.example.com");
    REQUIRE(leaf);
    CHECK(holds(*made, leaf->get(), "api.example.com"));
    std::size_t files_there = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path)) {
        (void)entry;
        ++files_there;
    }
    CHECK(files_there == 2);
}

TEST_CASE("an authority that does not hold is not replaced in silence", "[egress]") {
    test_support::ScratchDirectory scratch;
    AuthorityFiles files{scratch.path / "ca.pem", scratch.path / "ca.key"};
    REQUIRE(CertificateAuthority::load_or_make(files));
    std::string certificate = content(files.certificate);
    SECTION("half of it is gone") {
        std::filesystem::remove(files.key);
        auto loaded = CertificateAuthority::load_or_make(files);
        REQUIRE_FALSE(loaded);
        CHECK(loaded.error().message().find("ca.key is missing") != std::string::npos);
    }
    SECTION("the key is another's") {
        std::filesystem::remove(files.certificate);
        std::filesystem::remove(files.key);
        REQUIRE(CertificateAuthority::load_or_make(files));
        std::ofstream(files.certificate) << certificate;
        CHECK_FALSE(CertificateAuthority::load_or_make(files));
    }
    SECTION("it is no certificate") {
        std::ofstream(files.certificate) << "nothing";
        CHECK_FALSE(CertificateAuthority::load_or_make(files));
    }
    SECTION("it may not sign") {
        Identity root = issue("root", "", nullptr);
        Identity leaf = issue("leaf", "DNS:a", &root);
        leaf.write_certificate(files.certificate);
        leaf.write_key(files.key);
        CHECK_FALSE(CertificateAuthority::load_or_make(files));
    }
    SECTION("its key is locked") {
        Identity root = issue("root", "", nullptr);
        root.write_certificate(files.certificate);
        root.write_key(files.key, "secret");
        CHECK_FALSE(CertificateAuthority::load_or_make(files));
    }
}

TEST_CASE("one file may hold an authority's both parts", "[egress]") {
    test_support::ScratchDirectory scratch;
    AuthorityFiles files{scratch.path / "ca.pem", scratch.path / "ca.key"};
    auto made = CertificateAuthority::load_or_make(files);
    REQUIRE(made);
    std::string both = content(files.key) + content(files.certificate);
    auto parsed = CertificateAuthority::parse(both, both);
    REQUIRE(parsed);
    CHECK(parsed->certificate_pem() == made->certificate_pem());
}

TEST_CASE("a certificate is for one exact name", "[egress]") {
    auto authority = CertificateAuthority::make();
    REQUIRE(authority);
    std::string long_name = std::string(60, 'a') + "." + std::string(60, 'b') + ".example.com";
    for (std::string name : {std::string("api.example.com"), long_name, std::string("10.0.0.1"),
                             std::string("2001:db8::1")}) {
        auto leaf = authority->issue(name);
        INFO(name);
        REQUIRE(leaf);
        CHECK(holds(*authority, leaf->get(), name));
        CHECK_FALSE(holds(*authority, leaf->get(), "other.example.com"));
        CHECK_FALSE(holds(*authority, leaf->get(), "x.api.example.com"));
        CHECK(X509_cmp_current_time(X509_get0_notBefore(leaf->get())) < 0);
        auto week = std::time(nullptr) + 7 * 24 * 3600 + 60;
        CHECK(X509_cmp_time(X509_get0_notAfter(leaf->get()), &week) < 0);
        CHECK((X509_get_extension_flags(leaf->get()) & EXFLAG_CA) == 0);
    }
    auto other = CertificateAuthority::make();
    REQUIRE(other);
    CHECK_FALSE(holds(*other, authority->issue("api.example.com")->get(), "api.example.com"));
}

TEST_CASE("certificates are kept for the names used last", "[egress]") {
    auto authority = CertificateAuthority::make();
    REQUIRE(authority);
    LeafCache cache(*authority, 2);
    auto serial = [&](const std::string& host) {
        auto leaf = cache.get(host);
        REQUIRE(leaf);
        const ASN1_INTEGER* number = X509_get0_serialNumber(*leaf);
        return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(number)),
                           static_cast<std::size_t>(ASN1_STRING_length(number)));
    };
    std::string a = serial("a.example.com");
    std::string b = serial("b.example.com");
    CHECK(a != b);
    CHECK(serial("a.example.com") == a);
    serial("c.example.com");
    CHECK(cache.size() == 2);
    CHECK(serial("a.example.com") == a);
    CHECK(serial("b.example.com") != b);
}
