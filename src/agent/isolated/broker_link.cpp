#include "agent/isolated/broker_link.hpp"

#include "agent/ground/reply.hpp"
#include "agent/isolated/capabilities.hpp"
#include "base/scope_exit.hpp"
#include "http/access_path.hpp"
#include "http/reverse_proxy.hpp"
#include "net/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace opensandbox::agent {
namespace {

/// For a broker to come: the host makes one in milliseconds, and waits up to a minute with another
/// when brokers end again and again.
constexpr std::chrono::seconds kPatience{15};
constexpr std::chrono::milliseconds kTurn{5};

Error unavailable(std::string reason) {
    return {ErrorCode::unsupported, "isolation is not available: " + std::move(reason)};
}

http::Response refused(const Error& error) {
    json::object body{{"code", code::kNotSupported}, {"message", error.message()}};
    return http::json_response(503, json::serialize(json::value(std::move(body))));
}

}  // namespace

http::Origin BrokerLink::origin() const {
    return http::Origin::unix_socket("/proc/self/fd/" + std::to_string(socket_.get()));
}

/// Takes what packets there are; the last one counts.
Status BrokerLink::receive() {
    while (true) {
        std::array<char, 512> text{};
        iovec piece{text.data(), text.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        ssize_t got = ::recvmsg(host_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (socket_ || refusal_.empty()) return {};
            return unavailable(refusal_);
        }
        if (got <= 0) {
            // The part of the server that made this sandbox is gone; another knows of no socket.
            if (socket_) return {};
            return unavailable(
                "the server's privileged part was started again since this sandbox began");
        }
        const cmsghdr* header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
            socket_.reset(descriptor);
            refusal_.clear();
            settled_ = false;
            continue;
        }
        refusal_.assign(text.data(), static_cast<std::size_t>(got));
    }
}

Awaitable<Status> BrokerLink::await_packet() {
    auto executor = co_await asio::this_coro::executor;
    // Shared with the deadline, which may fire when this frame is already gone.
    auto watched = std::make_shared<asio::posix::stream_descriptor>(executor, host_);
    ScopeExit keep([watched] { watched->release(); });
    net::Deadline deadline(executor, kPatience, [watched] {
        boost::system::error_code ignored;
        if (watched->is_open()) watched->cancel(ignored);
    });
    boost::system::error_code failed;
    co_await watched->async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return unavailable("the host gives no answer");
    co_return Status();
}

Awaitable<Status> BrokerLink::settle(BrokerSettings settings) {
    http::ClientRequest request("POST", kBrokerSettingsTarget);
    request.content = encode(settings);
    auto answered = co_await client_->send(origin(), std::move(request));
    if (!answered) co_return answered.error();
    int status = (*answered)->head().status;
    if (status != 200) co_return unavailable("the broker answers " + std::to_string(status));
    co_return Status();
}

Awaitable<Result<http::Origin>> BrokerLink::ask(BrokerSettings settings) {
    if (!asked_) {
        asked_ = true;
        ::shutdown(host_, SHUT_WR);
    }
    // Once more for one that ended since it was told of.
    for (int attempt = 0; attempt < 2; ++attempt) {
        Status received = receive();
        if (received && !socket_) {
            Status ready = co_await await_packet();
            received = ready ? receive() : std::move(ready);
        }
        if (!received) co_return received.error();
        if (settled_) co_return origin();
        Status told = co_await settle(settings);
        if (told) {
            settled_ = true;
            co_return origin();
        }
        if (told.error().code() == ErrorCode::unsupported) co_return told.error();
        socket_.reset();
    }
    co_return unavailable("its process ended");
}

Awaitable<Result<http::Origin>> BrokerLink::reach(BrokerSettings settings) {
    while (asking_)
        co_await net::sleep_for(kTurn);
    asking_ = true;
    ScopeExit done([this] { asking_ = false; });
    co_return co_await ask(std::move(settings));
}

Awaitable<void> BrokerLink::forward(http::Exchange& exchange, BrokerSettings settings) {
    auto origin = co_await reach(std::move(settings));
    if (!origin) {
        if (exchange.request().path() == kCapabilitiesPath) {
            Isolation::Abilities none;
            none.message = origin.error().message();
            co_await reply_json(exchange, 200, capabilities_json(none, IsolationConfig(), true));
        } else {
            co_await exchange.respond(refused(origin.error()));
        }
        co_return;
    }
    http::Forwarding forwarding;
    forwarding.origin = std::move(*origin);
    forwarding.target = exchange.request().target;
    forwarding.edit_request = [](http::Fields& fields) { fields.erase(http::kAccessTokenField); };
    forwarding.render_error = [this](const Error& error) {
        // Nobody listens there any more; another may be on its way already.
        if (error.code() == ErrorCode::unavailable) socket_.reset();
        return refused(
            unavailable("its process ended, and its sessions with it: " + error.message()));
    };
    co_await http::forward(exchange, *client_, std::move(forwarding));
}

}  // namespace opensandbox::agent
