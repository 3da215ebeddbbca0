#include "egress/intercept/tls/trust.hpp"

#include "egress/intercept/tls/certificate_authority.hpp"
#include "support/catch_result.hpp"
#include "tls_peers.hpp"

#include <openssl/pem.h>

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
