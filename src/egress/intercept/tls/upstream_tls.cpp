#include "egress/intercept/tls/upstream_tls.hpp"

#include "egress/intercept/tls/bulk_settings.hpp"
#include "net/task.hpp"
#include "net/tls_session.hpp"
#include "net/tls_stream.hpp"

#include <boost/asio/this_coro.hpp>
#include <openssl/err.h>

#include <algorithm>
#include <filesystem>

namespace opensandbox::egress {
namespace {

/// What the callbacks of OpenSSL need to know of a session; owned by it.
struct Note {
    std::string key;
    SessionCache& cache;
    CertificateRequest on_request;
    bool certificate_requested = false;
};

void free_note(void*, void* note, CRYPTO_EX_DATA*, int, long, void*) {
    std::unique_ptr<Note> owned(static_cast<Note*>(note));
}

int note_index() {
    static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, free_note);
    return index;
}

Note* note_of(SSL* session) {
    return static_cast<Note*>(SSL_get_ex_data(session, note_index()));
}

/// Called when a server asks for a certificate, and only then. -1 suspends the handshake.
int on_certificate_request(SSL* session, X509**, EVP_PKEY**) {
    Note* note = note_of(session);
    note->certificate_requested = true;
    return note->on_request == CertificateRequest::decline ? 0 : -1;
}

/// Keeps a session that may be resumed; 1 takes it over.
int on_new_session(SSL* session, SSL_SESSION* made) {
    Note* note = note_of(session);
    if (note == nullptr || note->certificate_requested) return 0;
    note->cache.put(note->key, net::SessionHandle(made));
    return 1;
}

std::string wire_protocols(const std::vector<std::string>& names) {
    std::string wire;
    for (const std::string& name : names) {
        wire += static_cast<char>(name.size());
        wire += name;
    }
    return wire;
}

Error wrong(std::string_view what, const std::string& path) {
    return {ErrorCode::invalid_argument,
            "upstream TLS: " + std::string(what) + " " + path + ": " + net::take_tls_reason()};
}

}  // namespace

Result<std::unique_ptr<UpstreamTls>> UpstreamTls::make(UpstreamTlsSettings settings) {
    std::unique_ptr<UpstreamTls> made(new UpstreamTls(std::move(settings)));
    auto ready = made->set_up();
    if (!ready) return ready.error();
    return made;
}

Status UpstreamTls::set_up() {
    net::TlsSettings basics;
    // Roots of the system, unless others were named.
    basics.verify = settings_.verify && settings_.trust_directory.empty();
    auto context = net::make_tls_context(basics);
    if (!context) return context.error();
    SSL_CTX* raw = context->get();
    SSL_CTX_set_alpn_protos(raw, nullptr, 0);
    prepare_for_bulk(raw);
    SSL_CTX_set_verify(raw, settings_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    if (!settings_.trust_directory.empty()) {
        std::filesystem::path folder(settings_.trust_directory);
        std::error_code failure;
        if (!std::filesystem::is_directory(folder, failure)) {
            return Error(ErrorCode::invalid_argument,
                         "upstream TLS: no folder " + settings_.trust_directory);
        }
        auto bundle = folder / "ca-certificates.crt";
        bool has_bundle = std::filesystem::exists(bundle, failure);
        if (has_bundle && SSL_CTX_load_verify_file(raw, bundle.c_str()) != 1) {
            return wrong("certificates", bundle.string());
        }
        if (SSL_CTX_load_verify_dir(raw, folder.c_str()) != 1) {
            return wrong("folder", folder.string());
        }
    }
    const std::string& extra = settings_.extra_ca_file;
    if (!extra.empty() && SSL_CTX_load_verify_file(raw, extra.c_str()) != 1) {
        return wrong("extra CA file", extra);
    }
    SSL_CTX_set_session_cache_mode(
        raw, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL | SSL_SESS_CACHE_NO_AUTO_CLEAR);
    SSL_CTX_sess_set_new_cb(raw, on_new_session);
    SSL_CTX_set_client_cert_cb(raw, on_certificate_request);
    context_ = std::move(*context);
    return {};
}

/// Offers the protocols and resumes a session where one is kept.
SSL* UpstreamTls::prepare(const UpstreamTarget& target, const std::string& key) {
    const bool verify =
        settings_.verify && !(settings_.unverified && settings_.unverified(target.client));
    auto session = net::TlsSession::open(context_.get(), target.host, verify);
    if (!session) return nullptr;
    SSL* raw = session->handle();
    if (!verify) SSL_set_verify(raw, SSL_VERIFY_NONE, nullptr);
    auto note = std::make_unique<Note>(key, sessions_, settings_.on_certificate_request);
    if (SSL_set_ex_data(raw, note_index(), note.get()) != 1) return nullptr;
    (void)note.release();
    std::string wire = wire_protocols(target.protocols);
    auto* bytes = reinterpret_cast<const unsigned char*>(wire.data());
    if (!wire.empty() && SSL_set_alpn_protos(raw, bytes, static_cast<unsigned>(wire.size())) != 0) {
        return nullptr;
    }
    if (auto known = sessions_.take(key)) SSL_set_session(raw, known.get());
    SSL_up_ref(raw);
    return raw;
}

Awaitable<UpstreamConnection> UpstreamTls::secure(net::StreamSocket socket, UpstreamTarget target) {
    UpstreamConnection made;
    std::string key = std::to_string(target.client) + ' ' + target.host + ' ' +
                      std::to_string(target.port) + ' ' + wire_protocols(target.protocols);
    SSL* raw = prepare(target, key);
    if (raw == nullptr) {
        made.failure = "TLS: " + net::take_tls_reason();
        co_return made;
    }
    auto session = net::TlsSession::adopt(raw);
    session.attach(socket.native_handle());
    auto handshake = std::make_shared<net::TlsHandshake>(std::move(socket), std::move(session));
    auto executor = co_await asio::this_coro::executor;
    net::Deadline deadline(executor, settings_.timeout, [handshake] { handshake->close(); });
    auto agreed = co_await handshake->run(target.host);
    bool late = deadline.expired();
    deadline.disarm();
    made.certificate_requested = note_of(raw)->certificate_requested;
    if (!agreed) {
        made.failure = late ? "TLS with " + target.host + ": timed out" : agreed.error().message();
        co_return made;
    }
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(raw, &protocol, &size);
    made.protocol.assign(reinterpret_cast<const char*>(protocol), size);
    made.resumed = SSL_session_reused(raw) == 1;
    made.session = raw;
    made.stream = handshake->finish();
    co_return made;
}

}  // namespace opensandbox::egress
