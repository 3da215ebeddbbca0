#include "egress/intercept/tls/client_tls.hpp"

#include "egress/intercept/tls/bulk_settings.hpp"
#include "net/task.hpp"
#include "net/tls_context.hpp"
#include "net/tls_session.hpp"
#include "net/tls_stream.hpp"

#include <boost/asio/this_coro.hpp>
#include <openssl/err.h>
#include <openssl/sha.h>

#include <array>

namespace opensandbox::egress {
namespace {

int face_index() {
    static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return index;
}

/// Chooses what was agreed on with the server, and nothing else.
int choose_protocol(SSL* session, const unsigned char** out, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void*) {
    auto* face = static_cast<const ClientFace*>(SSL_get_ex_data(session, face_index()));
    if (face == nullptr || face->protocol.empty()) return SSL_TLSEXT_ERR_NOACK;
    std::string_view rest(reinterpret_cast<const char*>(offered), offered_size);
    while (!rest.empty()) {
        auto length = static_cast<unsigned char>(rest.front());
        if (rest.substr(1, length) == face->protocol) {
            *out = reinterpret_cast<const unsigned char*>(rest.data() + 1);
            *size = length;
            return SSL_TLSEXT_ERR_OK;
        }
        rest.remove_prefix(std::min<std::size_t>(rest.size(), 1U + length));
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// Tickets made for one sandbox and name open nothing for another.
bool bind_sessions(SSL* session, const ClientFace& face) {
    std::string text = std::to_string(face.client) + ' ' + face.host;
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    return SSL_set_session_id_context(session, digest.data(), digest.size()) == 1;
}

}  // namespace

Result<std::unique_ptr<ClientTls>> ClientTls::make(const CertificateAuthority& authority,
                                                   std::size_t cached_leaves) {
    std::unique_ptr<ClientTls> made(new ClientTls(authority, cached_leaves));
    auto ready = made->set_up();
    if (!ready) return ready.error();
    return made;
}

Status ClientTls::set_up() {
    ERR_clear_error();
    context_.reset(SSL_CTX_new(TLS_server_method()));
    if (!context_) return Error(ErrorCode::internal, "TLS: " + net::take_tls_reason());
    SSL_CTX* raw = context_.get();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    prepare_for_bulk(raw);
    SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(raw, 1);
    SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
    tickets_.install(raw);
    return {};
}

Result<SSL*> ClientTls::prepare(const ClientFace& face) {
    auto leaf = leaves_.get(face.host);
    if (!leaf) return leaf.error();
    ERR_clear_error();
    net::SslHandle session(SSL_new(context_.get()));
    bool ready = session && SSL_use_certificate(session.get(), *leaf) == 1 &&
                 SSL_use_PrivateKey(session.get(), authority_.leaf_key()) == 1 &&
                 bind_sessions(session.get(), face);
    if (!ready) return Error(ErrorCode::internal, "TLS: " + net::take_tls_reason());
    SSL_set_accept_state(session.get());
    return session.release();
}

Awaitable<Result<std::unique_ptr<net::Stream>>> ClientTls::accept(
    net::StreamSocket socket, ClientFace face, std::chrono::milliseconds timeout) {
    auto prepared = prepare(face);
    if (!prepared) co_return prepared.error();
    SSL* raw = *prepared;
    auto session = net::TlsSession::adopt(raw);
    session.attach(socket.native_handle(), std::move(face.received));
    SSL_set_ex_data(raw, face_index(), &face);
    auto handshake = std::make_shared<net::TlsHandshake>(std::move(socket), std::move(session));
    auto executor = co_await asio::this_coro::executor;
    net::Deadline deadline(executor, timeout, [handshake] { handshake->close(); });
    auto agreed = co_await handshake->run("the client");
    SSL_set_ex_data(raw, face_index(), nullptr);
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "TLS with the client: timed out");
    deadline.disarm();
    if (!agreed) co_return agreed.error();
    co_return handshake->finish();
}

}  // namespace opensandbox::egress
