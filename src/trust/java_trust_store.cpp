#include "trust/java_trust_store.hpp"

#include "net/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/pkcs12.h>

namespace opensandbox::trust {
namespace {

constexpr int kIterations = 10'000;
/// trustedKeyUsage of Oracle, with anyExtendedKeyUsage as its value.
constexpr const char* kTrustedKeyUsage = "2.16.840.1.113894.746875.1.1";

void free_bags(STACK_OF(PKCS12_SAFEBAG) * bags) {
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
}
void free_safes(STACK_OF(PKCS7) * safes) {
    sk_PKCS7_pop_free(safes, PKCS7_free);
}
using Bags = std::unique_ptr<STACK_OF(PKCS12_SAFEBAG), net::OpensslFree<free_bags>>;
using Safes = std::unique_ptr<STACK_OF(PKCS7), net::OpensslFree<free_safes>>;
using Object = std::unique_ptr<ASN1_OBJECT, net::OpensslFree<ASN1_OBJECT_free>>;
using Attribute = std::unique_ptr<X509_ATTRIBUTE, net::OpensslFree<X509_ATTRIBUTE_free>>;
using Store = std::unique_ptr<PKCS12, net::OpensslFree<PKCS12_free>>;

Attribute trusted_for_all() {
    Object type(OBJ_txt2obj(kTrustedKeyUsage, 1));
    Object any(OBJ_nid2obj(NID_anyExtendedKeyUsage));
    if (!type || !any) return nullptr;
    Attribute made(X509_ATTRIBUTE_new());
    bool set = made && X509_ATTRIBUTE_set1_object(made.get(), type.get()) == 1 &&
               X509_ATTRIBUTE_set1_data(made.get(), V_ASN1_OBJECT, any.get(), -1) == 1;
    return set ? std::move(made) : nullptr;
}

bool add(STACK_OF(PKCS12_SAFEBAG) * bags, X509* certificate, std::size_t number) {
    std::unique_ptr<PKCS12_SAFEBAG, net::OpensslFree<PKCS12_SAFEBAG_free>> bag(
        PKCS12_SAFEBAG_create_cert(certificate));
    // The JDK keeps one certificate for each name.
    std::string name = "root-" + std::to_string(number);
    auto attribute = trusted_for_all();
    if (!bag || !attribute) return false;
    if (PKCS12_add_friendlyname_asc(bag.get(), name.c_str(), -1) != 1) return false;
    auto* all = const_cast<STACK_OF(X509_ATTRIBUTE)*>(PKCS12_SAFEBAG_get0_attrs(bag.get()));
    if (all == nullptr || sk_X509_ATTRIBUTE_push(all, attribute.get()) == 0) return false;
    (void)attribute.release();
    if (sk_PKCS12_SAFEBAG_push(bags, bag.get()) == 0) return false;
    (void)bag.release();
    return true;
}

Error failed() {
    return {ErrorCode::internal, "make a trust store: " + net::take_tls_reason()};
}

}  // namespace

Result<std::string> make_java_trust_store(const std::vector<net::CertificateHandle>& roots,
                                          const std::string& password) {
    ERR_clear_error();
    Bags bags(sk_PKCS12_SAFEBAG_new_null());
    Safes safes(sk_PKCS7_new_null());
    if (!bags || !safes) return failed();
    for (std::size_t i = 0; i < roots.size(); ++i) {
        if (!add(bags.get(), roots[i].get(), i)) return failed();
    }
    STACK_OF(PKCS7)* list = safes.get();
    // Not encrypted: these are public. The password only seals the store.
    if (PKCS12_add_safe(&list, bags.get(), -1, 0, nullptr) != 1) return failed();
    Store store(PKCS12_add_safes(list, 0));
    bool sealed =
        store && PKCS12_set_mac(store.get(), password.data(), static_cast<int>(password.size()),
                                nullptr, 0, kIterations, EVP_sha256()) == 1;
    net::BioHandle out(BIO_new(BIO_s_mem()));
    if (!sealed || i2d_PKCS12_bio(out.get(), store.get()) != 1) return failed();
    char* data = nullptr;
    long size = BIO_get_mem_data(out.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
}

}  // namespace opensandbox::trust
