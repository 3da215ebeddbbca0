#include "net/tls.hpp"

#include "base/digest.hpp"
#include "net/socket_stream.hpp"
#include "net/task.hpp"
#include "net/tls_context.hpp"
#include "net/tls_session.hpp"
#include "net/tls_stream.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <optional>

namespace opensandbox::net {

struct TlsClient::Context {
    explicit Context(TlsContextHandle h) : handle(std::move(h)) {}
    TlsContextHandle handle;
};

TlsClient::TlsClient(TlsSettings settings) : settings_(std::move(settings)) {}
TlsClient::~TlsClient() = default;

Status TlsClient::prepare() {
    if (context_) return Status();
    auto made = make_tls_context(settings_);
    if (!made) return made.error();
    context_ = std::make_unique<Context>(std::move(*made));
    return Status();
}

const std::string& TlsClient::identity() {
    if (!identity_.empty()) return identity_;
    Sha256 sum;
    for (const std::string* part :
         {&settings_.ca_file, &settings_.cert_file, &settings_.key_file, &settings_.ca_pem,
          &settings_.cert_pem, &settings_.key_pem, &settings_.server_name}) {
        sum.update(*part);
        sum.update(std::string_view("\0", 1));
    }
    sum.update(settings_.verify ? std::string_view("verified") : std::string_view("not"));
    return identity_ = sum.finish();
}

Awaitable<Result<std::unique_ptr<Stream>>> TlsClient::connect(std::string host, std::uint16_t port,
                                                              std::chrono::milliseconds timeout) {
    using std::chrono::steady_clock;
    auto began = steady_clock::now();
    auto ready = prepare();
    if (!ready) co_return ready.error();
    const std::string& name = settings_.server_name.empty() ? host : settings_.server_name;
    auto session = TlsSession::open(context_->handle.get(), name, settings_.verify);
    if (!session) co_return session.error();
    auto socket = co_await connect_socket(host, port, timeout);
    if (!socket) co_return socket.error();
    session->attach(socket->native_handle());
    auto executor = co_await asio::this_coro::executor;
    auto handshake = std::make_shared<TlsHandshake>(std::move(*socket), std::move(*session));
    std::string shown = host + ":" + std::to_string(port);
    std::optional<Deadline> deadline;
    if (timeout.count() > 0) {
        auto left =
            timeout - std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - began);
        left = std::max(left, std::chrono::milliseconds(1));
        deadline.emplace(executor, left, [handshake] { handshake->close(); });
    }
    auto agreed = co_await handshake->run(shown);
    if (deadline && deadline->expired()) {
        co_return Error(ErrorCode::timeout, "TLS with " + shown + ": timed out");
    }
    if (!agreed) co_return agreed.error();
    deadline.reset();
    co_return handshake->finish();
}

}  // namespace opensandbox::net
