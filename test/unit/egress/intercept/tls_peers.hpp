#pragma once

#include "support/tls_server.hpp"

#include <catch2/catch.hpp>
#include <openssl/err.h>
#include <sys/time.h>

#include <string>
#include <string_view>
#include <vector>

/// Blocking clients and servers, which share no code with ours.
namespace opensandbox::egress::test {

using namespace opensandbox::test_support;

/// Has blocking calls fail rather than hang.
inline void limit_waiting(int fd) {
    timeval limit{10, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

inline std::string wire_list(const std::vector<std::string>& names) {
    std::string wire;
    for (const std::string& name : names)
        wire += static_cast<char>(name.size()) + name;
    return wire;
}

/// A server's choice of protocol: the first of its own that the client offers.
inline std::function<void(SSL_CTX*)> speaking(const std::string& wire) {
    return [wire](SSL_CTX* context) {
        static std::vector<std::unique_ptr<std::string>> kept;
        static std::mutex guard;
        std::lock_guard lock(guard);
        kept.push_back(std::make_unique<std::string>(wire));
        SSL_CTX_set_alpn_select_cb(
            context,
            [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in,
               unsigned in_size, void* list) {
                auto* own = static_cast<std::string*>(list);
                auto* chosen = const_cast<unsigned char**>(out);
                int found = SSL_select_next_proto(
                    chosen, size, reinterpret_cast<const unsigned char*>(own->data()),
                    static_cast<unsigned>(own->size()), in, in_size);
                return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
            },
            kept.back().get());
    };
}

inline bool say(SSL* session, std::string_view text) {
    while (!text.empty()) {
        int count = SSL_write(session, text.data(), static_cast<int>(text.size()));
        if (count <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

/// What has come when `until` is in it; less when the peer ended before.
inline std::string hear(SSL* session, std::string_view until) {
    std::string text;
    char byte = 0;
    while (text.find(until) == std::string::npos) {
        if (SSL_read(session, &byte, 1) <= 0) break;
        text += byte;
    }
    return text;
}

inline std::string hear_bytes(SSL* session, std::size_t count) {
    std::string text(count, '\0');
    std::size_t have = 0;
    while (have < count) {
        int got = SSL_read(session, text.data() + have, static_cast<int>(count - have));
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
}

/// A client's TLS connection.
class SecureClient {
  public:
    /// Trusts `authority_pem` alone. An empty name sends none and checks none.
    SecureClient(std::uint16_t port, const std::string& authority_pem, const std::string& name,
                 const std::vector<std::string>& protocols = {})
        : context_(SSL_CTX_new(TLS_client_method())), fd_(dial_loopback(port)) {
        limit_waiting(fd_.get());
        const int on = 1;
        ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        std::unique_ptr<BIO, OpensslDeleter<BIO_free>> bio(
            BIO_new_mem_buf(authority_pem.data(), static_cast<int>(authority_pem.size())));
        Certificate authority(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), authority.get());
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        session_.reset(SSL_new(context_.get()));
        SSL_set_fd(session_.get(), fd_.get());
        if (!name.empty()) {
            SSL_set_tlsext_host_name(session_.get(), name.c_str());
            SSL_set1_host(session_.get(), name.c_str());
        }
        std::string wire = wire_list(protocols);
        if (!wire.empty()) {
            SSL_set_alpn_protos(session_.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                                static_cast<unsigned>(wire.size()));
        }
    }

    bool connect() {
        ERR_clear_error();
        if (SSL_connect(session_.get()) == 1) return true;
        const char* reason = ERR_reason_error_string(ERR_peek_error());
        failure = reason != nullptr ? reason : "";
        return false;
    }
    std::string protocol() const {
        const unsigned char* name = nullptr;
        unsigned size = 0;
        SSL_get0_alpn_selected(session_.get(), &name, &size);
        return {reinterpret_cast<const char*>(name), size};
    }
    Certificate certificate() const {
        return Certificate(SSL_get1_peer_certificate(session_.get()));
    }
    bool say(std::string_view text) { return test::say(session_.get(), text); }
    std::string hear(std::string_view until) { return test::hear(session_.get(), until); }
    std::string hear_bytes(std::size_t count) { return test::hear_bytes(session_.get(), count); }
    /// Until the peer ends; says whether that was in order (close_notify).
    std::string hear_all() {
        std::string all;
        char piece[4096];
        int count = 0;
        while ((count = SSL_read(session_.get(), piece, sizeof(piece))) > 0)
            all.append(piece, static_cast<std::size_t>(count));
        ended_in_order = SSL_get_error(session_.get(), count) == SSL_ERROR_ZERO_RETURN;
        return all;
    }
    /// Cuts the connection without a word.
    void cut() { fd_.reset(); }
    SSL* session() { return session_.get(); }
    int fd() const { return fd_.get(); }

    std::string failure;  ///< OpenSSL's reason, after connect() has failed
    bool ended_in_order = false;

  private:
    std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context_;
    UniqueFd fd_;
    std::unique_ptr<SSL, OpensslDeleter<SSL_free>> session_;
};

/// A client without TLS.
class PlainClient {
  public:
    explicit PlainClient(std::uint16_t port) : fd_(dial_loopback(port)) {
        limit_waiting(fd_.get());
    }
    bool say(std::string_view text) {
        return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(text.size());
    }
    std::string hear(std::string_view until) {
        std::string text;
        char byte = 0;
        while (text.find(until) == std::string::npos) {
            if (::recv(fd_.get(), &byte, 1, 0) <= 0) break;
            text += byte;
        }
        return text;
    }
    std::string hear_all() {
        std::string all;
        char piece[4096];
        ssize_t count = 0;
        while ((count = ::recv(fd_.get(), piece, sizeof(piece), 0)) > 0)
            all.append(piece, static_cast<std::size_t>(count));
        was_reset = count < 0 && errno == ECONNRESET;
        return all;
    }
    void end_sending() { ::shutdown(fd_.get(), SHUT_WR); }
    int fd() const { return fd_.get(); }

    bool was_reset = false;

  private:
    UniqueFd fd_;
};

}  // namespace opensandbox::egress::test
