#include "trust/certificates.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace opensandbox::trust {

std::vector<net::CertificateHandle> read_certificates(std::string_view pem) {
    std::vector<net::CertificateHandle> found;
    net::BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    while (true) {
        net::CertificateHandle next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
        if (next) {
            found.push_back(std::move(next));
            continue;
        }
        bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
        ERR_clear_error();
        if (end || BIO_eof(bio.get()) == 1) return found;
    }
}

}  // namespace opensandbox::trust
