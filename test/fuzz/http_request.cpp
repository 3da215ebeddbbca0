// Feeds bytes as a connection to a server whose handler echoes: nothing may crash, and every answer
// must be well-framed, so that a client of ours can read the echo back.
#include "http/head_parser.hpp"
#include "http/server.hpp"
#include "memory_stream.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <cstdlib>

using namespace opensandbox;

namespace {

Awaitable<void> echo(http::Exchange& exchange) {
    auto body = co_await http::read_all(exchange.body(), 64 * 1024);
    if (exchange.request().method == "STREAM") {
        http::ResponseHead head(200, exchange.request().fields);
        head.fields.erase("Content-Length");
        auto started = co_await exchange.start(std::move(head));
        if (body && started) co_await exchange.write(*body);
        co_await exchange.finish();
        co_return;
    }
    http::Response response(body ? 200 : 400);
    response.head.fields = exchange.request().fields;
    if (body) response.body = *body;
    co_await exchange.respond(std::move(response));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    asio::io_context context(1);
    std::string written;
    http::ServerOptions options;
    options.max_head = 4096;
    options.max_body = 16 * 1024;
    http::Server server(context.get_executor(), echo, options);
    std::size_t piece = data[0] == 0 ? 65536 : data[0];
    auto stream =
        std::make_unique<fuzz::MemoryStream>(context.get_executor(), text, piece, &written);
    server.serve(std::make_unique<fuzz::MemoryListener>(std::move(stream)));
    context.run();
    if (server.open_connections() != 0) std::abort();
    if (!written.empty()) {
        http::HeadScanner scanner;
        http::ParsedResponse response;
        if (scanner.scan(written) != http::HeadScanner::State::complete) std::abort();
        std::string_view head = std::string_view(written).substr(0, scanner.size());
        auto reason = http::parse_response_head(head, response);
        if (reason && *reason != http::kTooManyFields) std::abort();
    }
    return 0;
}
