#include "egress/intercept/tls/session_tickets.hpp"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

namespace opensandbox::egress {
namespace {

bool set_mac_key(EVP_MAC_CTX* mac, std::array<unsigned char, 32>& key) {
    char digest[] = "SHA256";
    std::array<OSSL_PARAM, 3> parameters{
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.data(), key.size()),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, parameters.data()) == 1;
}

}  // namespace

void SessionTickets::install(SSL_CTX* context) {
    SSL_CTX_set_app_data(context, this);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket);
    SSL_CTX_set_timeout(context, std::chrono::seconds(2 * kKeyLife).count());
}

int SessionTickets::on_ticket(SSL* session, unsigned char* name, unsigned char* iv,
                              EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int sealing) {
    auto* self = static_cast<SessionTickets*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(session)));
    if (!self->rotate()) return 0;
    return sealing != 0 ? self->seal(name, iv, cipher, mac) : self->open(name, iv, cipher, mac);
}

/// Sees to a current key that is young enough; false when there can be none (no ticket then).
bool SessionTickets::rotate() {
    auto now = std::chrono::steady_clock::now();
    if (current_.usable && now - made_ < kKeyLife) return true;
    bool recent = current_.usable && now - made_ < 2 * kKeyLife;
    previous_ = recent ? current_ : Key();
    current_ = Key();
    current_.usable = RAND_bytes(current_.name.data(), current_.name.size()) == 1 &&
                      RAND_priv_bytes(current_.cipher.data(), current_.cipher.size()) == 1 &&
                      RAND_priv_bytes(current_.mac.data(), current_.mac.size()) == 1;
    made_ = now;
    return current_.usable;
}

int SessionTickets::seal(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                         EVP_MAC_CTX* mac) {
    std::copy(current_.name.begin(), current_.name.end(), name);
    if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return -1;
    bool ready =
        EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, current_.cipher.data(), iv) == 1 &&
        set_mac_key(mac, current_.mac);
    return ready ? 1 : -1;
}

/// 0: unknown, a full handshake follows; 2: opened, but a new ticket is due.
int SessionTickets::open(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                         EVP_MAC_CTX* mac) {
    Key* key = nullptr;
    for (Key* candidate : {&current_, &previous_}) {
        bool same = candidate->usable &&
                    std::memcmp(candidate->name.data(), name, candidate->name.size()) == 0;
        if (same) key = candidate;
    }
    if (key == nullptr) return 0;
    bool ready =
        EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv) == 1 &&
        set_mac_key(mac, key->mac);
    if (!ready) return -1;
    return key == &current_ ? 1 : 2;
}

}  // namespace opensandbox::egress
