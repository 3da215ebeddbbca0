#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace opensandbox::net {

template <auto Free>
struct OpensslFree {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};

using KeyHandle = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using CertificateHandle = std::unique_ptr<X509, OpensslFree<X509_free>>;
using BioHandle = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using SslHandle = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using SslContextHandle = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;
using SessionHandle = std::unique_ptr<SSL_SESSION, OpensslFree<SSL_SESSION_free>>;

}  // namespace opensandbox::net
