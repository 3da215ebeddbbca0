#pragma once

#include <openssl/ssl.h>

#include <cstddef>

namespace opensandbox::egress {

/// What one system call may bring: eight records.
inline constexpr std::size_t kReadRoom = std::size_t{8} * SSL3_RT_MAX_ENCRYPTED_LENGTH;

/// What makes both sides of an intercepted connection cheap.
inline void prepare_for_bulk(SSL_CTX* context) {
    // One system call for what would be two for each record: its header and the rest. The room is
    // freed whenever nothing is in it (SSL_MODE_RELEASE_BUFFERS).
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kReadRoom);
    // As browsers have them. SHA-384, which OpenSSL would put first, has no instructions of its
    // own, and a handshake is full of it.
    SSL_CTX_set_ciphersuites(context,
                             "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                             "TLS_CHACHA20_POLY1305_SHA256");
}

}  // namespace opensandbox::egress
