#pragma once

#include "net/openssl_handles.hpp"

#include <array>
#include <chrono>

namespace opensandbox::egress {

/// The keys that seal the tickets with which clients resume their sessions. A key seals for an
/// hour and opens for one more, so that a stolen one tells about two hours at most. Not
/// thread-safe: one for each context, used by one thread.
class SessionTickets {
  public:
    static constexpr std::chrono::hours kKeyLife{1};

    /// Makes the context use these keys; this object must outlive it.
    void install(SSL_CTX* context);

  private:
    struct Key {
        std::array<unsigned char, 16> name{};
        std::array<unsigned char, 32> cipher{};
        std::array<unsigned char, 32> mac{};
        bool usable = false;
    };

    static int on_ticket(SSL* session, unsigned char* name, unsigned char* iv,
                         EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int sealing);
    bool rotate();
    int seal(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac);
    int open(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
             EVP_MAC_CTX* mac);

    Key current_;
    Key previous_;
    std::chrono::steady_clock::time_point made_;
};

}  // namespace opensandbox::egress
