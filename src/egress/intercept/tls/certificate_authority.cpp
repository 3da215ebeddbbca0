#include "egress/intercept/tls/certificate_authority.hpp"

#include "base/replace_file.hpp"
#include "egress/intercept/tls/certificate_builder.hpp"
#include "net/tls_context.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sstream>

namespace opensandbox::egress {
namespace {

constexpr std::chrono::hours kAuthorityLife{10 * 365 * 24};
/// What a subject's common name may hold (X.520).
constexpr std::size_t kMaxCommonName = 64;

Error failed(std::string_view what) {
    return {ErrorCode::internal, std::string(what) + ": " + net::take_tls_reason()};
}

Error unfit(std::string_view reason) {
    return {ErrorCode::invalid_argument, "certificate authority: " + std::string(reason)};
}

/// Two authorities of the same name would be mistaken for each other in a trust store.
Result<std::string> unique_name() {
    std::array<unsigned char, 4> bytes{};
    if (RAND_bytes(bytes.data(), bytes.size()) != 1) return failed("random bytes");
    std::string name = "opensandbox egress CA ";
    for (unsigned char byte : bytes) {
        name += "0123456789abcdef"[byte >> 4];
        name += "0123456789abcdef"[byte & 15];
    }
    return name;
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
}

Result<std::string> read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return unfit("cannot read " + path.string());
    return text.str();
}

/// A file for everyone to read, which replace_file() makes private.
Status replace_public(const std::filesystem::path& path, std::string_view content) {
    std::filesystem::path aside = path;
    aside += ".public";
    auto written = replace_file(aside, content);
    if (!written) return written;
    if (::chmod(aside.c_str(), 0644) != 0 || ::rename(aside.c_str(), path.c_str()) != 0) {
        return Error::from_errno(errno, "replace " + path.string());
    }
    return {};
}

/// Without this OpenSSL would ask for the password of an encrypted key on the terminal.
int refuse_password(char*, int, int, void*) {
    return 0;
}

}  // namespace

Result<CertificateAuthority> CertificateAuthority::make() {
    CertificateAuthority made;
    auto name = unique_name();
    if (!name) return name.error();
    made.key_.reset(EVP_EC_gen("P-256"));
    if (!made.key_) return failed("make a key");
    auto certificate = CertificateBuilder(made.key_.get())
                           .common_name(*name)
                           .issued_by(nullptr)
                           .valid_for(kAuthorityLife)
                           .extension(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
                           .extension(NID_key_usage, "critical,keyCertSign,cRLSign")
                           .extension(NID_subject_key_identifier, "hash")
                           .sign(made.key_.get());
    if (!certificate) return certificate.error();
    made.certificate_ = std::move(*certificate);
    auto finished = made.finish();
    if (!finished) return finished.error();
    return made;
}

Result<CertificateAuthority> CertificateAuthority::parse(std::string_view certificate_pem,
                                                         std::string_view key_pem) {
    ERR_clear_error();
    CertificateAuthority made;
    net::BioHandle certificate(
        BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
    net::BioHandle key(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
    made.certificate_.reset(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
    if (!made.certificate_) return unfit("no certificate: " + net::take_tls_reason());
    made.key_.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, refuse_password, nullptr));
    if (!made.key_) return unfit("no private key: " + net::take_tls_reason());
    X509* raw = made.certificate_.get();
    if (X509_check_private_key(raw, made.key_.get()) != 1) {
        ERR_clear_error();
        return unfit("the key is another certificate's");
    }
    if (X509_check_ca(raw) != 1 || (X509_get_key_usage(raw) & KU_KEY_CERT_SIGN) == 0) {
        return unfit("the certificate may not sign others");
    }
    if (X509_cmp_current_time(X509_get0_notAfter(raw)) <= 0) return unfit("it has expired");
    auto finished = made.finish();
    if (!finished) return finished.error();
    return made;
}

Result<CertificateAuthority> CertificateAuthority::load_or_make(const AuthorityFiles& files) {
    std::error_code ignored;
    bool has_certificate = std::filesystem::exists(files.certificate, ignored);
    bool has_key = std::filesystem::exists(files.key, ignored);
    if (has_certificate != has_key) {
        return unfit((has_key ? files.certificate : files.key).string() + " is missing");
    }
    if (!has_key) {
        auto made = make();
        if (!made) return made.error();
        auto saved = made->save(files);
        if (!saved) return saved.error();
        return made;
    }
    auto certificate = read_file(files.certificate);
    if (!certificate) return certificate.error();
    auto key = read_file(files.key);
    if (!key) return key.error();
    return parse(*certificate, *key);
}

Status CertificateAuthority::finish() {
    leaf_key_.reset(EVP_EC_gen("P-256"));
    if (!leaf_key_) return failed("make a key");
    net::BioHandle text(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_X509(text.get(), certificate_.get()) != 1) {
        return failed("write a certificate");
    }
    certificate_pem_ = text_of(text.get());
    return {};
}

Status CertificateAuthority::save(const AuthorityFiles& files) const {
    net::BioHandle text(BIO_new(BIO_s_secmem()));
    if (PEM_write_bio_PKCS8PrivateKey(text.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) != 1) {
        return failed("write a key");
    }
    auto key_written = replace_file(files.key, text_of(text.get()));
    if (!key_written) return key_written;
    return replace_public(files.certificate, certificate_pem_);
}

Result<net::CertificateHandle> CertificateAuthority::issue(const std::string& host) const {
    boost::system::error_code not_numeric;
    boost::asio::ip::make_address(host, not_numeric);
    bool named = not_numeric && host.size() < kMaxCommonName;
    CertificateBuilder builder(leaf_key_.get());
    // A subject that is left out makes the other name critical (RFC 5280 section 4.2.1.6).
    if (named) builder.common_name(host);
    std::string other = (not_numeric ? "DNS:" : "IP:") + host;
    return builder.issued_by(certificate_.get())
        .valid_for(kLeafLife)
        .extension(NID_basic_constraints, "critical,CA:FALSE")
        .extension(NID_key_usage, "critical,digitalSignature")
        .extension(NID_ext_key_usage, "serverAuth")
        .extension(NID_authority_key_identifier, "keyid")
        .extension(NID_subject_alt_name, (named ? "" : "critical,") + other)
        .sign(key_.get());
}

}  // namespace opensandbox::egress
