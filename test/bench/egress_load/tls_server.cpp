#include "base/unique_fd.hpp"
#include "measures.hpp"
#include "tls_client.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

namespace opensandbox::bench {

namespace {

constexpr std::size_t kGathered = std::size_t{128} * 1024;

/// A session that sends several records by one system call.
TlsClient::Session session_on(SSL_CTX* context, int socket) {
    TlsClient::Session session(SSL_new(context), SSL_free);
    BIO* plain = BIO_new_socket(socket, BIO_NOCLOSE);
    BIO* gathering = BIO_new(BIO_f_buffer());
    BIO_set_write_buffer_size(gathering, kGathered);
    BIO_up_ref(plain);
    SSL_set_bio(session.get(), plain, BIO_push(gathering, plain));
    return session;
}

bool send_all(SSL* session, std::string_view bytes) {
    return SSL_write(session, bytes.data(), static_cast<int>(bytes.size())) > 0;
}

/// Answers each request with as many bytes, whatever it asks for, until the client is gone.
void answer(SSL_CTX* context, UniqueFd socket, const std::string& content, std::uint64_t length) {
    const TlsClient::Session session = session_on(context, socket.get());
    if (SSL_accept(session.get()) != 1) return;
    const std::string head =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
    std::string request;
    std::string piece(4096, '\0');
    while (true) {
        const int count = SSL_read(session.get(), piece.data(), static_cast<int>(piece.size()));
        if (count <= 0) return;
        request.append(piece, 0, static_cast<std::size_t>(count));
        if (!request.ends_with("\r\n\r\n")) continue;
        request.clear();
        if (!send_all(session.get(), head)) return;
        for (std::uint64_t left = length; left > 0;) {
            const auto size = std::min<std::uint64_t>(left, content.size());
            if (!send_all(session.get(), std::string_view(content).substr(0, size))) return;
            left -= size;
        }
        BIO_flush(SSL_get_wbio(session.get()));
    }
}

}  // namespace

void tls_serve(const Arguments& arguments) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    if (SSL_CTX_use_certificate_chain_file(context.get(), arguments[0].c_str()) != 1) {
        fail_tls(arguments[0]);
    }
    if (SSL_CTX_use_PrivateKey_file(context.get(), arguments[1].c_str(), SSL_FILETYPE_PEM) != 1) {
        fail_tls(arguments[1]);
    }
    std::string content(std::size_t{1} << 20, '\0');
    RAND_bytes(reinterpret_cast<unsigned char*>(content.data()), static_cast<int>(content.size()));
    const std::uint64_t length = std::stoull(arguments[3]);
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(443);
    if (::inet_pton(AF_INET, arguments[2].c_str(), &at.sin_addr) != 1 ||
        ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(listener.get(), SOMAXCONN) != 0) {
        throw std::system_error(errno, std::generic_category(), "listen");
    }
    std::vector<std::jthread> connections;
    while (true) {
        UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) throw std::system_error(errno, std::generic_category(), "accept");
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections.emplace_back([&, taken = std::move(socket)]() mutable {
            answer(context.get(), std::move(taken), content, length);
        });
    }
}

}  // namespace opensandbox::bench
