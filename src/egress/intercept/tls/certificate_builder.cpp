#include "egress/intercept/tls/certificate_builder.hpp"

#include "net/tls_context.hpp"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>

namespace opensandbox::egress {
namespace {

constexpr std::chrono::hours kBackdate{24};

/// 127 random bits: positive, and unpredictable as issuers owe (CA/Browser Forum, section 7.1).
bool set_serial(X509* certificate) {
    std::array<unsigned char, 16> bytes{};
    if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
    bytes[0] &= 0x7f;
    bytes[15] |= 1;
    std::unique_ptr<BIGNUM, net::OpensslFree<BN_free>> number(
        BN_bin2bn(bytes.data(), bytes.size(), nullptr));
    return number &&
           BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

}  // namespace

CertificateBuilder::CertificateBuilder(EVP_PKEY* key) : made_(X509_new()) {
    ERR_clear_error();
    check(made_ != nullptr);
    if (!good_) return;
    check(X509_set_version(made_.get(), X509_VERSION_3) == 1 && set_serial(made_.get()));
    check(X509_set_pubkey(made_.get(), key) == 1);
    issuer_ = made_.get();
}

CertificateBuilder& CertificateBuilder::common_name(const std::string& name) {
    if (!good_) return *this;
    auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
    check(X509_NAME_add_entry_by_txt(X509_get_subject_name(made_.get()), "CN", MBSTRING_UTF8, text,
                                     static_cast<int>(name.size()), -1, 0) == 1);
    return *this;
}

CertificateBuilder& CertificateBuilder::issued_by(X509* issuer) {
    if (!good_) return *this;
    if (issuer != nullptr) issuer_ = issuer;
    check(X509_set_issuer_name(made_.get(), X509_get_subject_name(issuer_)) == 1);
    return *this;
}

CertificateBuilder& CertificateBuilder::valid_for(std::chrono::seconds life) {
    if (!good_) return *this;
    auto backdate = std::chrono::seconds(kBackdate).count();
    check(X509_gmtime_adj(X509_getm_notBefore(made_.get()), -backdate) != nullptr);
    check(X509_gmtime_adj(X509_getm_notAfter(made_.get()), life.count()) != nullptr);
    if (!good_ || issuer_ == made_.get()) return *this;
    const ASN1_TIME* end = X509_get0_notAfter(issuer_);
    if (ASN1_TIME_compare(X509_get0_notAfter(made_.get()), end) > 0) {
        check(X509_set1_notAfter(made_.get(), end) == 1);
    }
    return *this;
}

CertificateBuilder& CertificateBuilder::extension(int kind, const std::string& value) {
    if (!good_) return *this;
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer_, made_.get(), nullptr, nullptr, 0);
    net::ExtensionHandle made(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    check(made && X509_add_ext(made_.get(), made.get(), -1) == 1);
    return *this;
}

Result<net::CertificateHandle> CertificateBuilder::sign(EVP_PKEY* key) {
    check(good_ && X509_sign(made_.get(), key, EVP_sha256()) > 0);
    if (!good_) {
        return Error(ErrorCode::internal, "make a certificate: " + net::take_tls_reason());
    }
    return std::move(made_);
}

}  // namespace opensandbox::egress
