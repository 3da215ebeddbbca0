// Feeds bytes as a server's answer to the client's parsers: head, interim answers, body.
#include "http/client_connection.hpp"
#include "http/incoming_body.hpp"
#include "memory_stream.hpp"
#include "net/task.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <cstdlib>

using namespace opensandbox;

namespace {

Awaitable<void> receive(std::unique_ptr<net::Stream> stream, std::string_view method) {
    http::ClientConnection connection(std::move(stream), false);
    auto response = co_await connection.receive_head(4096);
    if (!response) co_return;
    if (response->head.status < 100 || response->head.status > 999) std::abort();
    http::Framing framing;
    if (http::response_framing(*response, method, framing)) co_return;
    http::IncomingBody::Errors errors{ErrorCode::bad_gateway, ErrorCode::bad_gateway};
    http::IncomingBody body(connection.input(), framing, UINT64_MAX, errors);
    auto all = co_await http::read_all(body, 1 << 20);
    if (!all) co_return;
    if (framing.kind == http::Framing::Kind::length && all->size() != framing.length) std::abort();
    if (!body.done()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    asio::io_context context(1);
    std::size_t piece = (data[0] & 127) == 0 ? 65536 : data[0] & 127;
    auto stream = std::make_unique<fuzz::MemoryStream>(context.get_executor(), text, piece);
    net::spawn(context.get_executor(),
               receive(std::move(stream), (data[0] & 128) != 0 ? "HEAD" : "GET"), "receive");
    context.run();
    return 0;
}
