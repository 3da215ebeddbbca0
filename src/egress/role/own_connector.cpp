#include "egress/role/own_connector.hpp"

#include "egress/policy/target.hpp"

namespace opensandbox::egress {

namespace {

constexpr std::chrono::milliseconds kTimeout{5000};

DialSettings in_time(DialSettings dial) {
    dial.timeout = kTimeout;
    return dial;
}

/// A name as DNS messages have it; it was checked.
std::string wire_name(std::string_view name) {
    std::string wire;
    while (!name.empty()) {
        const std::string_view label = name.substr(0, name.find('.'));
        wire += static_cast<char>(label.size());
        wire += label;
        name.remove_prefix(std::min(name.size(), label.size() + 1));
    }
    return wire + '\0';
}

}  // namespace

OwnConnector::OwnConnector(asio::any_io_executor executor, dns::UpstreamSettings upstream,
                           DialSettings dial, Permits permits)
    : names_(std::make_shared<dns::Forwarder>(std::move(executor), std::move(upstream),
                                              dns::CacheSettings(), true)),
      dialer_(in_time(std::move(dial))),
      permits_(std::move(permits)) {}

Awaitable<Result<std::vector<net::Address>>> OwnConnector::resolve(std::string host) {
    boost::system::error_code no_address;
    const net::Address literal = boost::asio::ip::make_address(host, no_address);
    if (!no_address) co_return std::vector<net::Address>{literal};
    const Result<std::string> name = parse_host_name(host);
    if (!name) co_return name.error();
    std::vector<net::Address> found;
    for (const std::uint16_t type : {net::dns::kTypeA, net::dns::kTypeAaaa}) {
        dns::UpstreamQuestion question;
        question.name = wire_name(*name);
        question.type = type;
        const auto answer = co_await dns::Forwarder::ask(names_, std::move(question));
        if (!answer) continue;
        for (const dns::AnswerAddress& address : (*answer)->addresses)
            found.push_back(address.address);
    }
    if (found.empty()) co_return Error(ErrorCode::unavailable, host + " has no address");
    co_return found;
}

Awaitable<Result<std::unique_ptr<net::Stream>>> OwnConnector::connect(
    std::shared_ptr<OwnConnector> self, http::Origin origin) {
    const Result<std::vector<net::Address>> addresses = co_await self->resolve(origin.host);
    if (!addresses) co_return addresses.error();
    Error last;
    for (const net::Address& address : *addresses) {
        if (self->permits_ && !self->permits_(address)) {
            last = Error(ErrorCode::permission_denied, address.to_string() + " is not to be met");
            continue;
        }
        auto socket = co_await self->dialer_.dial(0, Endpoint(address, origin.port), {});
        if (!socket) {
            last = socket.error();
            continue;
        }
        if (!origin.tls) co_return net::make_stream(std::move(*socket));
        co_return co_await self->secure(std::move(*socket), std::move(origin));
    }
    co_return last;
}

Awaitable<Result<std::unique_ptr<net::Stream>>> OwnConnector::secure(net::StreamSocket socket,
                                                                     http::Origin origin) {
    if (!tls_) {
        auto made = UpstreamTls::make(UpstreamTlsSettings());
        if (!made) co_return made.error();
        tls_ = std::move(*made);
    }
    UpstreamTarget target;
    target.host = origin.host;
    target.port = origin.port;
    UpstreamConnection connection = co_await tls_->secure(std::move(socket), std::move(target));
    if (!connection.stream) co_return Error(ErrorCode::unavailable, connection.failure);
    co_return std::move(connection.stream);
}

}  // namespace opensandbox::egress
