#pragma once

#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// TLS from the other side: an authority that issues certificates, and a server in threads of its
/// own that blocks, sharing no code with ours.
namespace opensandbox::test_support {

template <auto Free>
struct OpensslDeleter {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};
using Key = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, OpensslDeleter<X509_free>>;

inline void demand(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("openssl: ") + what);
}

/// A certificate with its key.
struct Identity {
    Key key;
    Certificate certificate;

    void write_certificate(const std::filesystem::path& path) const {
        std::unique_ptr<FILE, OpensslDeleter<std::fclose>> file(std::fopen(path.c_str(), "w"));
        demand(file && PEM_write_X509(file.get(), certificate.get()) == 1, "write certificate");
    }
    /// Encrypted when a password is given.
    void write_key(const std::filesystem::path& path, const std::string& password = {}) const {
        std::unique_ptr<FILE, OpensslDeleter<std::fclose>> file(std::fopen(path.c_str(), "w"));
        demand(file != nullptr, "open key file");
        const EVP_CIPHER* cipher = password.empty() ? nullptr : EVP_aes_128_cbc();
        std::string secret = password;
        int written = PEM_write_PKCS8PrivateKey(file.get(), key.get(), cipher, secret.data(),
                                                static_cast<int>(secret.size()), nullptr, nullptr);
        demand(written == 1, "write key");
    }
};

/// Issues a certificate; without an issuer it signs itself and may issue others. `names` is a
/// subjectAltName, such as "IP:127.0.0.1,DNS:localhost".
inline Identity issue(const std::string& common_name, const std::string& names,
                      const Identity* issuer) {
    static std::atomic<long> serial{1};
    Identity made;
    made.key.reset(EVP_EC_gen("P-256"));
    made.certificate.reset(X509_new());
    X509* raw = made.certificate.get();
    X509_set_version(raw, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(raw), serial++);
    X509_gmtime_adj(X509_getm_notBefore(raw), -3600);
    X509_gmtime_adj(X509_getm_notAfter(raw), 3600);
    X509_set_pubkey(raw, made.key.get());
    auto* text = reinterpret_cast<const unsigned char*>(common_name.c_str());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509* signer = issuer != nullptr ? issuer->certificate.get() : raw;
    X509_set_issuer_name(raw, X509_get_subject_name(signer));
    X509V3_CTX context;
    X509V3_set_ctx(&context, signer, raw, nullptr, nullptr, 0);
    auto extend = [&](int kind, const std::string& value) {
        std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>> extension(
            X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
        demand(extension && X509_add_ext(raw, extension.get(), -1) == 1, "extension");
    };
    extend(NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (!names.empty()) extend(NID_subject_alt_name, names);
    EVP_PKEY* signing = issuer != nullptr ? issuer->key.get() : made.key.get();
    demand(X509_sign(raw, signing, EVP_sha256()) > 0, "sign");
    return made;
}

/// Accepts on a loopback port and runs `script` for every connection after its handshake.
class TlsServer {
  public:
    using Script = std::function<void(SSL*)>;

    /// With `client_authority` only clients with a certificate of it are served. `configure` may
    /// change more of how it speaks.
    TlsServer(const Identity& identity, Script script, const Identity* client_authority = nullptr,
              const std::function<void(SSL_CTX*)>& configure = {})
        : script_(std::move(script)), context_(SSL_CTX_new(TLS_server_method())) {
        std::signal(SIGPIPE, SIG_IGN);
        SSL_CTX_use_certificate(context_.get(), identity.certificate.get());
        SSL_CTX_use_PrivateKey(context_.get(), identity.key.get());
        if (client_authority != nullptr) {
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()),
                                client_authority->certificate.get());
            SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                               nullptr);
        }
        if (configure) configure(context_.get());
        listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        demand(::bind(listener_.get(), generic, size) == 0, "bind");
        demand(::listen(listener_.get(), 16) == 0, "listen");
        demand(::getsockname(listener_.get(), generic, &size) == 0, "getsockname");
        port = ntohs(address.sin_port);
        acceptor_ = std::thread([this] { accept(); });
    }
    ~TlsServer() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        acceptor_.join();
        {
            std::lock_guard lock(mutex_);
            for (const UniqueFd& fd : connections_)
                ::shutdown(fd.get(), SHUT_RDWR);
        }
        for (std::thread& thread : threads_)
            thread.join();
    }
    TlsServer(const TlsServer&) = delete;
    TlsServer& operator=(const TlsServer&) = delete;

    std::uint16_t port = 0;

  private:
    void accept() {
        while (true) {
            int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) return;
            // As servers do: what is written last must not wait for the peer's acknowledgement.
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            std::lock_guard lock(mutex_);
            connections_.emplace_back(fd);
            threads_.emplace_back([this, fd] { serve(fd); });
        }
    }
    void serve(int fd) {
        std::unique_ptr<SSL, OpensslDeleter<SSL_free>> session(SSL_new(context_.get()));
        SSL_set_fd(session.get(), fd);
        if (SSL_accept(session.get()) == 1) script_(session.get());
        ::shutdown(fd, SHUT_RDWR);
    }

    Script script_;
    std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context_;
    UniqueFd listener_;
    std::thread acceptor_;
    std::mutex mutex_;
    std::vector<UniqueFd> connections_;
    std::vector<std::thread> threads_;
};

inline UniqueFd dial_unix(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return {};
    return fd;
}

inline UniqueFd dial_loopback(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return {};
    return fd;
}

/// A script that passes everything to and from a connection that `dial` makes.
inline TlsServer::Script forward_to(std::function<UniqueFd()> dial) {
    return [dial](SSL* session) {
        UniqueFd backend = dial();
        if (!backend) return;
        std::array<char, 16384> piece{};
        while (true) {
            std::array<pollfd, 2> ready{
                {{SSL_get_fd(session), POLLIN, 0}, {backend.get(), POLLIN, 0}}};
            if (SSL_pending(session) == 0 && ::poll(ready.data(), ready.size(), -1) < 0) return;
            if (SSL_pending(session) > 0 || ready[0].revents != 0) {
                int count = SSL_read(session, piece.data(), piece.size());
                if (count <= 0) return;
                auto size = static_cast<std::size_t>(count);
                if (::send(backend.get(), piece.data(), size, MSG_NOSIGNAL) != count) return;
            }
            if (ready[1].revents != 0) {
                ssize_t count = ::recv(backend.get(), piece.data(), piece.size(), 0);
                if (count <= 0) {
                    SSL_shutdown(session);
                    return;
                }
                if (SSL_write(session, piece.data(), static_cast<int>(count)) != count) return;
            }
        }
    };
}

}  // namespace opensandbox::test_support
