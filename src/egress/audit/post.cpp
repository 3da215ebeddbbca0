#include "egress/audit/post.hpp"

#include "egress/intercept/core/host_name.hpp"
#include "http/client_connection.hpp"
#include "http/serialize.hpp"
#include "net/task.hpp"

namespace opensandbox::egress {

namespace {

constexpr std::chrono::milliseconds kConnect{5000};
constexpr std::size_t kMaxHead = 64 * 1024;

}  // namespace

Awaitable<Result<std::unique_ptr<net::Stream>>> connect_plainly(http::Origin origin) {
    if (origin.tls) co_return co_await origin.tls->connect(origin.host, origin.port, kConnect);
    co_return co_await net::connect_tcp(origin.host, origin.port, kConnect);
}

Awaitable<Result<int>> send_post(asio::any_io_executor executor, ConnectOrigin connect, Post post) {
    std::string bytes;
    http::append_request_line(bytes, "POST", post.target);
    http::append_field(bytes, "Host", host_and_port(post.origin.host, post.origin.port));
    http::append_fields(bytes, post.fields);
    http::append_field(bytes, "Content-Length", std::to_string(post.body.size()));
    http::append_field(bytes, "Connection", "close");
    bytes += "\r\n" + post.body;
    auto stream = co_await connect(std::move(post.origin));
    if (!stream) co_return stream.error();
    net::Stream& raw = **stream;
    http::ClientConnection connection(std::move(*stream), false);
    net::Deadline deadline(executor, post.timeout, [&raw] { raw.close(); });
    const Status written = co_await net::write_all(raw, bytes);
    if (!written) co_return written.error();
    const Result<http::ParsedResponse> head = co_await connection.receive_head(kMaxHead);
    if (!head) co_return head.error();
    co_return head->head.status;
}

}  // namespace opensandbox::egress
