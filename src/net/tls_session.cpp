#include "net/tls_session.hpp"

#include "net/tls_context.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace opensandbox::net {
namespace {

// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE on a closed connection.

/// A borrowed socket, with the bytes that were read from it before.
struct Socket {
    int fd;
    std::string received;
    std::size_t taken = 0;
    bool full = false;  ///< the last read took all that it had room for
    std::string unsent;
    std::size_t sent = 0;  ///< of `unsent`
    bool gathers = false;  ///< what is written waits in `unsent` for more
};

/// What is gathered before it is sent: eight records.
constexpr std::size_t kGathered = std::size_t{8} * SSL3_RT_MAX_PLAIN_LENGTH;

Socket& socket_of(BIO* bio) {
    return *static_cast<Socket*>(BIO_get_data(bio));
}

int take_received(Socket& socket, char* into, int room) {
    std::size_t count =
        std::min(socket.received.size() - socket.taken, static_cast<std::size_t>(room));
    socket.received.copy(into, count, socket.taken);
    socket.taken += count;
    if (socket.taken == socket.received.size()) {
        std::string().swap(socket.received);
        socket.taken = 0;
    }
    return static_cast<int>(count);
}

int bio_write(BIO* bio, const char* bytes, int count) {
    BIO_clear_retry_flags(bio);
    Socket& socket = socket_of(bio);
    // Nothing overtakes what still waits.
    if (socket.gathers || !socket.unsent.empty()) {
        socket.unsent.append(bytes, static_cast<std::size_t>(count));
        return count;
    }
    ssize_t sent =
        ::send(socket.fd, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* into, int room) {
    BIO_clear_retry_flags(bio);
    Socket& socket = socket_of(bio);
    if (!socket.received.empty()) return take_received(socket, into, room);
    ssize_t count = ::recv(socket.fd, into, static_cast<std::size_t>(room), MSG_DONTWAIT);
    socket.full = count == room;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    return 0;
}

struct BioMethodDeleter {
    void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};
using BioMethod = std::unique_ptr<BIO_METHOD, BioMethodDeleter>;

BioMethod make_socket_method() {
    BioMethod method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
    BIO_meth_set_write(method.get(), bio_write);
    BIO_meth_set_read(method.get(), bio_read);
    BIO_meth_set_ctrl(method.get(), bio_control);
    BIO_meth_set_create(method.get(), [](BIO* bio) {
        BIO_set_init(bio, 1);
        return 1;
    });
    BIO_meth_set_destroy(method.get(), [](BIO* bio) {
        std::unique_ptr<Socket> owned(static_cast<Socket*>(BIO_get_data(bio)));
        BIO_set_data(bio, nullptr);
        return 1;
    });
    return method;
}

/// The same for all connections, never changed.
const BIO_METHOD* socket_method() {
    static const BioMethod method = make_socket_method();
    return method.get();
}

bool expect_name(SSL* session, const std::string& host) {
    boost::system::error_code not_numeric;
    asio::ip::make_address(host, not_numeric);
    X509_VERIFY_PARAM* rules = SSL_get0_param(session);
    if (!not_numeric) return X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1;
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) == 1;
}

bool send_name(SSL* session, const std::string& host) {
    boost::system::error_code not_numeric;
    asio::ip::make_address(host, not_numeric);
    return !not_numeric || SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

}  // namespace

void TlsSession::Deleter::operator()(ssl_st* session) const {
    SSL_free(session);
}

Result<TlsSession> TlsSession::open(ssl_ctx_st* context, const std::string& host, bool verify) {
    ERR_clear_error();
    TlsSession session(SSL_new(context));
    SSL* raw = session.session_.get();
    if (raw == nullptr || !send_name(raw, host) || (verify && !expect_name(raw, host))) {
        return Error(ErrorCode::internal, "TLS with " + host + ": " + take_tls_reason());
    }
    SSL_set_connect_state(raw);
    return session;
}

void TlsSession::attach(int fd, std::string received) {
    BIO* bio = BIO_new(socket_method());
    auto socket = std::make_unique<Socket>(fd, std::move(received));
    BIO_set_data(bio, socket.release());
    SSL_set_bio(session_.get(), bio, bio);
}

TlsSession::Outcome TlsSession::judge(int result) {
    Outcome outcome;
    int system_error = errno;
    switch (SSL_get_error(session_.get(), result)) {
        case SSL_ERROR_WANT_READ: outcome.want = Want::read; return outcome;
        case SSL_ERROR_WANT_WRITE: outcome.want = Want::write; return outcome;
        case SSL_ERROR_ZERO_RETURN: return outcome;
        case SSL_ERROR_SYSCALL:
            outcome.reason = system_error != 0 ? std::strerror(system_error) : "connection lost";
            break;
        default: outcome.reason = take_tls_reason();
    }
    outcome.want = Want::failed;
    long verdict = SSL_get_verify_result(session_.get());
    if (verdict != X509_V_OK && !SSL_is_init_finished(session_.get())) {
        outcome.reason = std::string("the server's certificate does not hold: ") +
                         X509_verify_cert_error_string(verdict);
    }
    ERR_clear_error();
    return outcome;
}

TlsSession::Outcome TlsSession::handshake() {
    ERR_clear_error();
    errno = 0;
    int result = SSL_do_handshake(session_.get());
    if (result == 1) return {};
    return judge_end_as_failure(result);
}

TlsSession::Outcome TlsSession::read(std::span<char> into) {
    ERR_clear_error();
    errno = 0;
    int room = static_cast<int>(std::min<std::size_t>(into.size(), INT_MAX));
    int count = SSL_read(session_.get(), into.data(), room);
    if (count <= 0) return judge(count);
    Outcome outcome;
    const Socket& socket = socket_of(SSL_get_rbio(session_.get()));
    // Each call gives one record; what else has come is taken along. How a later one fails is told
    // by the next call.
    while (count > 0) {
        outcome.bytes += static_cast<std::size_t>(count);
        room -= count;
        if (room == 0 || (!has_pending() && !socket.full)) break;
        count = SSL_read(session_.get(), into.data() + outcome.bytes, room);
    }
    ERR_clear_error();
    return outcome;
}

TlsSession::Outcome TlsSession::send_unsent() {
    Outcome outcome;
    Socket& socket = socket_of(SSL_get_wbio(session_.get()));
    while (socket.sent < socket.unsent.size()) {
        ssize_t count = ::send(socket.fd, socket.unsent.data() + socket.sent,
                               socket.unsent.size() - socket.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            if (errno == EINTR) continue;
            outcome.want = errno == EAGAIN ? Want::write : Want::failed;
            if (outcome.want == Want::failed) outcome.reason = std::strerror(errno);
            return outcome;
        }
        socket.sent += static_cast<std::size_t>(count);
    }
    std::string().swap(socket.unsent);
    socket.sent = 0;
    return outcome;
}

TlsSession::Outcome TlsSession::write(std::string_view bytes) {
    Outcome outcome = send_unsent();
    if (outcome.want != Want::nothing || bytes.empty()) return outcome;
    ERR_clear_error();
    errno = 0;
    Socket& socket = socket_of(SSL_get_wbio(session_.get()));
    // Several records leave by one call and, over the loopback, in one packet, and so at a fraction
    // of the cost.
    socket.gathers = bytes.size() > SSL3_RT_MAX_PLAIN_LENGTH;
    if (socket.gathers) socket.unsent.reserve(kGathered + kGathered / 64);
    bytes = bytes.substr(0, kGathered);
    int count = 1;
    while (count > 0 && !bytes.empty()) {
        count = SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
        if (count <= 0) break;
        outcome.bytes += static_cast<std::size_t>(count);
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    socket.gathers = false;
    if (outcome.bytes == 0) return judge_end_as_failure(count);
    // What stopped it after some of the bytes stops the next call again.
    ERR_clear_error();
    Outcome sent = send_unsent();
    return sent.want == Want::failed ? sent : outcome;
}

TlsSession::Outcome TlsSession::judge_end_as_failure(int result) {
    Outcome outcome = judge(result);
    if (outcome.want == Want::nothing) {
        outcome.want = Want::failed;
        outcome.reason = "the server ended the connection";
    }
    return outcome;
}

bool TlsSession::has_unsent() const {
    return !socket_of(SSL_get_wbio(session_.get())).unsent.empty();
}

void TlsSession::say_goodbye() {
    if (SSL_get_rbio(session_.get()) == nullptr || !SSL_is_init_finished(session_.get())) return;
    ERR_clear_error();
    SSL_shutdown(session_.get());
    send_unsent();
    ERR_clear_error();
}

bool TlsSession::has_pending() const {
    return SSL_has_pending(session_.get()) == 1;
}

}  // namespace opensandbox::net
