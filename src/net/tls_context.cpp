#include "net/tls_context.hpp"

#include "net/openssl_handles.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace opensandbox::net {
namespace {

/// Where distributions keep the roots in one file.
constexpr std::array<const char*, 6> kBundles{
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

Error wrong_file(std::string_view what, const std::string& path) {
    return {ErrorCode::invalid_argument,
            "TLS: " + std::string(what) + " " + path + ": " + take_tls_reason()};
}

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
}

void trust_system_roots(SSL_CTX* context) {
    if (!is_set("SSL_CERT_FILE") && !is_set("SSL_CERT_DIR")) {
        for (const char* bundle : kBundles) {
            if (::access(bundle, R_OK) != 0) continue;
            if (SSL_CTX_load_verify_file(context, bundle) == 1) return;
        }
    }
    // Reads the two variables, else the folders that OpenSSL was built for. None is no failure
    // here: then no certificate will hold, and the handshake says so.
    SSL_CTX_set_default_verify_paths(context);
    ERR_clear_error();
}

/// Without this OpenSSL would ask for the password of an encrypted key on the terminal.
int refuse_password(char*, int, int, void*) {
    return 0;
}

/// All certificates in a text, in their order. OpenSSL's queue of errors says why there is none.
std::vector<CertificateHandle> certificates_in(const std::string& pem) {
    std::vector<CertificateHandle> found;
    const BioHandle text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    while (text) {
        CertificateHandle one(PEM_read_bio_X509(text.get(), nullptr, refuse_password, nullptr));
        if (!one) break;
        found.push_back(std::move(one));
    }
    // The last look finds that nothing is left.
    if (!found.empty()) ERR_clear_error();
    return found;
}

Error wrong_text(std::string_view what) {
    return {ErrorCode::invalid_argument, "TLS: " + std::string(what) + ": " + take_tls_reason()};
}

Status trust(SSL_CTX* context, const TlsSettings& settings) {
    if (!settings.ca_pem.empty()) {
        const auto roots = certificates_in(settings.ca_pem);
        if (roots.empty()) return wrong_text("CA certificates");
        for (const auto& root : roots)
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), root.get());
    } else if (!settings.ca_file.empty()) {
        if (SSL_CTX_load_verify_file(context, settings.ca_file.c_str()) != 1)
            return wrong_file("CA file", settings.ca_file);
    } else if (settings.verify) {
        trust_system_roots(context);
    }
    return Status();
}

Status present_certificate(SSL_CTX* context, const TlsSettings& settings) {
    if (settings.cert_pem.empty()) {
        const bool used =
            SSL_CTX_use_certificate_chain_file(context, settings.cert_file.c_str()) == 1;
        return used ? Status() : wrong_file("client certificate", settings.cert_file);
    }
    auto chain = certificates_in(settings.cert_pem);
    if (chain.empty() || SSL_CTX_use_certificate(context, chain.front().get()) != 1)
        return wrong_text("client certificate");
    for (auto issuer = chain.begin() + 1; issuer != chain.end(); ++issuer)
        if (SSL_CTX_add1_chain_cert(context, issuer->get()) != 1)
            return wrong_text("client certificate");
    return Status();
}

Status present_key(SSL_CTX* context, const TlsSettings& settings) {
    if (settings.key_pem.empty()) {
        const bool used =
            SSL_CTX_use_PrivateKey_file(context, settings.key_file.c_str(), SSL_FILETYPE_PEM) == 1;
        return used ? Status() : wrong_file("private key", settings.key_file);
    }
    const BioHandle text(
        BIO_new_mem_buf(settings.key_pem.data(), static_cast<int>(settings.key_pem.size())));
    const KeyHandle key(PEM_read_bio_PrivateKey(text.get(), nullptr, refuse_password, nullptr));
    if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return wrong_text("private key");
    return Status();
}

Status present(SSL_CTX* context, const TlsSettings& settings) {
    const bool certificate = !settings.cert_file.empty() || !settings.cert_pem.empty();
    const bool key = !settings.key_file.empty() || !settings.key_pem.empty();
    if (certificate != key) {
        return Error(ErrorCode::invalid_argument,
                     "TLS: a client certificate and its key are set together or not at all");
    }
    if (!certificate) return Status();
    SSL_CTX_set_default_passwd_cb(context, refuse_password);
    if (auto presented = present_certificate(context, settings); !presented) return presented;
    return present_key(context, settings);
}

}  // namespace

void TlsContextDeleter::operator()(ssl_ctx_st* context) const {
    SSL_CTX_free(context);
}

std::string take_tls_reason() {
    unsigned long code = ERR_get_error();
    ERR_clear_error();
    if (code == 0) return "unknown failure";
    if (ERR_SYSTEM_ERROR(code)) return std::string(::strerror(ERR_GET_REASON(code)));
    const char* reason = ERR_reason_error_string(code);
    return reason != nullptr ? reason : "error " + std::to_string(code);
}

Result<TlsContextHandle> make_tls_context(const TlsSettings& settings) {
    ERR_clear_error();
    TlsContextHandle context(SSL_CTX_new(TLS_client_method()));
    if (!context) return Error(ErrorCode::internal, "TLS: " + take_tls_reason());
    SSL_CTX* raw = context.get();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    constexpr std::array<unsigned char, 9> kHttp1{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    SSL_CTX_set_alpn_protos(raw, kHttp1.data(), kHttp1.size());
    SSL_CTX_set_verify(raw, settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    auto trusted = trust(raw, settings);
    if (!trusted) return trusted.error();
    auto presented = present(raw, settings);
    if (!presented) return presented.error();
    return context;
}

}  // namespace opensandbox::net
