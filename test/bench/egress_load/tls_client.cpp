#include "tls_client.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace opensandbox::bench {

namespace {

std::uint64_t length_of(std::string head) {
    constexpr std::string_view kField = "content-length:";
    std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto at = head.find(kField);
    if (at == std::string::npos) throw std::runtime_error("an answer without a length");
    return std::stoull(head.substr(at + kField.size()));
}

}  // namespace

void fail_tls(const std::string& what) {
    std::array<char, 256> reason{};
    ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
    throw std::runtime_error(what + ": " + reason.data());
}

TlsClient::TlsClient(std::string host, const std::string& address, const std::string& authority)
    : host_(std::move(host)), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    SSL_CTX* context = context_.get();
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    // Few system calls: what is measured stands between this client and its server.
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kPiece);
    if (SSL_CTX_load_verify_file(context, authority.c_str()) != 1) fail_tls(authority);
    address_.sin_family = AF_INET;
    address_.sin_port = htons(443);
    if (::inet_pton(AF_INET, address.c_str(), &address_.sin_addr) != 1) fail_tls(address);
}

TlsClient::Connection TlsClient::connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0) {
        throw std::system_error(errno, std::generic_category(), "connect");
    }
    Session session(SSL_new(context_.get()), SSL_free);
    SSL_set_tlsext_host_name(session.get(), host_.c_str());
    SSL_set1_host(session.get(), host_.c_str());
    SSL_set_fd(session.get(), fd.get());
    if (SSL_connect(session.get()) != 1) fail_tls("handshake");
    if (SSL_session_reused(session.get()) != 0) throw std::runtime_error("a resumed session");
    return {std::move(fd), std::move(session)};
}

void TlsClient::request(SSL* session, bool last) const {
    const Answer answer = ask(session, "small", last);
    std::size_t got = answer.content.size();
    std::string piece(8192, '\0');
    while (got < answer.length)
        got += read(session, piece);
}

TlsClient::Answer TlsClient::ask(SSL* session, const std::string& path, bool last) const {
    std::string text = "GET /" + path + " HTTP/1.1\r\nHost: " + host_ + "\r\n";
    text += last ? "Connection: close\r\n\r\n" : "\r\n";
    if (SSL_write(session, text.data(), static_cast<int>(text.size())) <= 0) fail_tls("request");
    std::string head;
    std::string piece(8192, '\0');
    std::size_t end = std::string::npos;
    while (end == std::string::npos) {
        head.append(piece, 0, read(session, piece));
        end = head.find("\r\n\r\n");
    }
    if (!head.starts_with("HTTP/1.1 200")) throw std::runtime_error(head.substr(0, 100));
    return {length_of(head.substr(0, end)), head.substr(end + 4)};
}

std::size_t TlsClient::read(SSL* session, std::string& piece) {
    const int count = SSL_read(session, piece.data(), static_cast<int>(piece.size()));
    if (count <= 0) fail_tls("answer");
    return static_cast<std::size_t>(count);
}

}  // namespace opensandbox::bench
