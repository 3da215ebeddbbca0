#include "egress/intercept/core/upstream_proxy.hpp"

#include "egress/intercept/core/host_name.hpp"
#include "http/head_parser.hpp"
#include "http/serialize.hpp"

#include <array>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kMaxHead = 16 * 1024;

Error refused(const UpstreamProxy& proxy, std::string_view reason) {
    return {ErrorCode::bad_gateway, "the upstream proxy " + host_and_port(proxy.host, proxy.port) +
                                        " " + std::string(reason)};
}

}  // namespace

Result<UpstreamProxy> parse_upstream_proxy(std::string_view url, std::string_view authorization) {
    UpstreamProxy proxy;
    constexpr std::string_view kPlain = "http://";
    constexpr std::string_view kTls = "https://";
    proxy.tls = url.substr(0, kTls.size()) == kTls;
    bool plain = url.substr(0, kPlain.size()) == kPlain;
    Error wrong(ErrorCode::invalid_argument, "the upstream proxy is no http(s)://host[:port]");
    if (!proxy.tls && !plain) return wrong;
    url.remove_prefix(proxy.tls ? kTls.size() : kPlain.size());
    if (!url.empty() && url.back() == '/') url.remove_suffix(1);
    auto authority = parse_authority(url);
    if (!authority) return wrong;
    proxy.host = authority->host;
    proxy.port = authority->port.value_or(proxy.tls ? 443 : 80);
    constexpr std::string_view kBroken("\r\n\0", 3);
    if (authorization.find_first_of(kBroken) != std::string_view::npos) {
        return Error(ErrorCode::invalid_argument,
                     "the upstream proxy's authorization holds a line break");
    }
    proxy.authorization = authorization;
    return proxy;
}

Awaitable<Status> connect_through(net::Stream& stream, UpstreamProxy proxy, std::string target) {
    std::string head;
    http::append_request_line(head, "CONNECT", target);
    http::append_field(head, "Host", target);
    if (!proxy.authorization.empty()) {
        http::append_field(head, "Proxy-Authorization", proxy.authorization);
    }
    head += "\r\n";
    auto sent = co_await net::write_all(stream, head);
    if (!sent) co_return refused(proxy, "is gone: " + sent.error().message());
    std::string answer;
    http::HeadScanner scanner;
    std::array<char, 2048> piece{};
    auto state = http::HeadScanner::State::incomplete;
    while (state == http::HeadScanner::State::incomplete) {
        auto count = co_await stream.read_some(piece);
        if (!count || *count == 0) co_return refused(proxy, "ended the connection");
        answer.append(piece.data(), *count);
        if (answer.size() > kMaxHead) co_return refused(proxy, "answered at too great length");
        state = scanner.scan(answer);
    }
    http::ParsedResponse response;
    bool sound =
        state == http::HeadScanner::State::complete &&
        !http::parse_response_head(std::string_view(answer).substr(0, scanner.size()), response);
    if (!sound) co_return refused(proxy, "answered something that is no HTTP");
    int status = response.head.status;
    if (status < 200 || status > 299) {
        co_return refused(proxy, "answered " + std::to_string(status) + " for " + target);
    }
    if (answer.size() != scanner.size()) co_return refused(proxy, "sent bytes of its own");
    co_return Status();
}

}  // namespace opensandbox::egress
