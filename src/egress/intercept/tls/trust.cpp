#include "egress/intercept/tls/trust.hpp"

#include "trust/certificates.hpp"
#include "trust/java_trust_store.hpp"

#include <openssl/pem.h>

namespace opensandbox::egress {
namespace {

/// Larger than any bundle of roots; beyond it a file is taken for something else.
constexpr std::size_t kMaxBundle = 8 * 1024 * 1024;
/// What JDKs use for their own stores; nothing in ours is secret.
constexpr const char* kStorePassword = "changeit";

/// The certificates alone, each written anew: what stands between them is not ours to pass on.
std::string to_pem(const std::vector<net::CertificateHandle>& certificates) {
    net::BioHandle out(BIO_new(BIO_s_mem()));
    for (const net::CertificateHandle& certificate : certificates)
        PEM_write_bio_X509(out.get(), certificate.get());
    char* data = nullptr;
    long size = BIO_get_mem_data(out.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

/// The image's roots, and where they were.
std::vector<net::CertificateHandle> find_roots(const ReadImageFile& read,
                                               const std::vector<std::string>& extra,
                                               std::string& from) {
    for (const auto* paths : {&extra, &image_bundle_paths()}) {
        for (const std::string& path : *paths) {
            auto content = read(path);
            if (!content || content->size() > kMaxBundle) continue;
            auto roots = trust::read_certificates(*content);
            if (roots.empty()) continue;
            from = path;
            return roots;
        }
    }
    return {};
}

std::vector<std::pair<std::string, std::string>> variables(const std::string& directory) {
    std::string bundle = directory + "/bundle.pem";
    std::vector<std::pair<std::string, std::string>> all;
    // OpenSSL and what stands on it, Go and Cargo; each of the others reads its own.
    for (const char* name :
         {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO",
          "CARGO_HTTP_CAINFO", "npm_config_cafile", "AWS_CA_BUNDLE"}) {
        all.emplace_back(name, bundle);
    }
    // These two add to built-in roots.
    all.emplace_back("NODE_EXTRA_CA_CERTS", directory + "/ca.pem");
    all.emplace_back("DENO_CERT", directory + "/ca.pem");
    all.emplace_back("APT_CONFIG", directory + "/apt.conf");
    all.emplace_back("WGETRC", directory + "/wgetrc");
    all.emplace_back("JAVA_TOOL_OPTIONS",
                     "-Djavax.net.ssl.trustStore=" + directory +
                         "/truststore.p12 -Djavax.net.ssl.trustStorePassword=" + kStorePassword +
                         " -Djavax.net.ssl.trustStoreType=PKCS12");
    return all;
}

}  // namespace

const std::vector<std::string>& image_bundle_paths() {
    static const std::vector<std::string> paths{
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/cert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    };
    return paths;
}

Result<TrustPackage> make_trust_package(const std::string& authority_pem, const ReadImageFile& read,
                                        const std::string& directory,
                                        const std::vector<std::string>& extra_bundles) {
    TrustPackage made;
    auto authority = trust::read_certificates(authority_pem);
    if (authority.empty()) {
        return Error(ErrorCode::invalid_argument, "the egress authority is no certificate");
    }
    auto roots = find_roots(read, extra_bundles, made.roots_from);
    std::string ca = to_pem(authority);
    for (net::CertificateHandle& certificate : authority)
        roots.push_back(std::move(certificate));
    auto store = trust::make_java_trust_store(roots, kStorePassword);
    if (!store) return store.error();
    std::string bundle_path = directory + "/bundle.pem";
    made.files = {{"ca.pem", std::move(ca)},
                  {"bundle.pem", to_pem(roots)},
                  {"truststore.p12", std::move(*store)},
                  {"apt.conf", "Acquire::https::CAInfo \"" + bundle_path + "\";\n"},
                  {"wgetrc", "ca_certificate = " + bundle_path + "\n"}};
    made.environment = variables(directory);
    return made;
}

}  // namespace opensandbox::egress
