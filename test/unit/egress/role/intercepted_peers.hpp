#pragma once

#include "net/task.hpp"
#include "support/ip_probe.hpp"
#include "unit/egress/intercept/tls_peers.hpp"

#include <fcntl.h>
#include <future>

/// Both ends of connections that are intercepted, in threads of their own, which block.
namespace opensandbox::test {

using Context = std::unique_ptr<SSL_CTX, test_support::OpensslDeleter<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, test_support::OpensslDeleter<SSL_free>>;

/// Waits without holding up the event loop.
template <class T>
Awaitable<T> result_of(std::future<T>& future) {
    while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
        co_await net::sleep_for(std::chrono::milliseconds(5));
    co_return future.get();
}

inline std::string pem_of(const test_support::Identity& identity) {
    std::unique_ptr<BIO, test_support::OpensslDeleter<BIO_free>> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), identity.certificate.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

/// A connection out of a namespace that blocks; empty when there is none.
inline UniqueFd dial(const TestNamespace& place, const std::string& address, int port) {
    UniqueFd fd = start_connect(place, address, port);
    if (!wait_for(fd.get(), POLLOUT) || connect_state(fd) != 0) return {};
    ::fcntl(fd.get(), F_SETFL, 0);
    egress::test::limit_waiting(fd.get());
    return fd;
}

inline std::string read_to_end(int fd) {
    std::string all;
    char piece[4096];
    ssize_t count = 0;
    while ((count = ::recv(fd, piece, sizeof(piece), 0)) > 0)
        all.append(piece, static_cast<std::size_t>(count));
    return all;
}

inline std::string get_request(const std::string& host) {
    return "GET /x HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
}

/// What comes back over a connection out of a namespace.
inline std::future<std::string> plain_get(const TestNamespace& place, std::string address, int port,
                                          std::string host) {
    return std::async(std::launch::async, [&place, address, port, host]() -> std::string {
        const UniqueFd fd = dial(place, address, port);
        if (!fd) return "no connection";
        const std::string request = get_request(host);
        if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "not sent";
        return read_to_end(fd.get());
    });
}

/// The same over TLS, to whom an authority names so.
inline std::future<std::string> secure_get(const TestNamespace& place, std::string address,
                                           std::string authority_pem, std::string host) {
    return std::async(std::launch::async, [&place, address, authority_pem, host]() -> std::string {
        const UniqueFd fd = dial(place, address, 443);
        if (!fd) return "no connection";
        const Context context(SSL_CTX_new(TLS_client_method()));
        std::unique_ptr<BIO, test_support::OpensslDeleter<BIO_free>> bio(
            BIO_new_mem_buf(authority_pem.data(), static_cast<int>(authority_pem.size())));
        const test_support::Certificate authority(
            PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
        SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
        const Session session(SSL_new(context.get()));
        SSL_set_fd(session.get(), fd.get());
        SSL_set_tlsext_host_name(session.get(), host.c_str());
        SSL_set1_host(session.get(), host.c_str());
        if (SSL_connect(session.get()) != 1) return "no TLS";
        if (!egress::test::say(session.get(), get_request(host))) return "not sent";
        return egress::test::hear(session.get(), "bye");
    });
}

/// Answers one request over TLS with a field of the request's Authorization; returns the request.
inline std::future<std::string> secure_answer(const Listener& listener,
                                              const test_support::Identity& identity) {
    return std::async(std::launch::async, [&listener, &identity]() -> std::string {
        const UniqueFd fd = listener.accept();
        egress::test::limit_waiting(fd.get());
        const Context context(SSL_CTX_new(TLS_server_method()));
        SSL_CTX_use_certificate(context.get(), identity.certificate.get());
        SSL_CTX_use_PrivateKey(context.get(), identity.key.get());
        const Session session(SSL_new(context.get()));
        SSL_set_fd(session.get(), fd.get());
        if (SSL_accept(session.get()) != 1) return "no TLS";
        std::string request = egress::test::hear(session.get(), "\r\n\r\n");
        const bool secret = request.find("s3cret-value") != std::string::npos;
        egress::test::say(session.get(), std::string("HTTP/1.1 200 OK\r\nX-Echo: ") +
                                             (secret ? "s3cret-value" : "none") +
                                             "\r\nContent-Length: 3\r\n\r\nbye");
        return request;
    });
}

}  // namespace opensandbox::test
