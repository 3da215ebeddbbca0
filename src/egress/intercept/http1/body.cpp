#include "egress/intercept/core/message_fields.hpp"
#include "egress/intercept/http1/exchange.hpp"
#include "http/serialize.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace opensandbox::egress::http1 {
namespace {

/// Eight TLS records: with what they and a chunk have around them, two packets of the loopback's.
constexpr std::size_t kPiece = 128 * 1024 - 512;
constexpr std::size_t kPrefixRoom = 8;
constexpr std::size_t kSuffix = 2;

/// Puts the size of a chunk in front of its data, where room was left; the start of the whole.
char* put_prefix(char* data, std::size_t size) {
    char digits[kPrefixRoom];
    auto [end, failure] = std::to_chars(digits, digits + sizeof(digits) - 2, size, 16);
    auto length = static_cast<std::size_t>(end - digits);
    char* start = data - length - 2;
    *std::copy_n(digits, length, start) = '\r';
    data[-1] = '\n';
    return start;
}

}  // namespace

Awaitable<BodyWriter::End> BodyWriter::copy(http::BodyReader& body) {
    auto room = std::make_unique_for_overwrite<char[]>(kPiece);
    std::size_t around = chunked_ ? kPrefixRoom + kSuffix : 0;
    char* data = room.get() + (chunked_ ? kPrefixRoom : 0);
    while (true) {
        auto count = co_await body.read_some(std::span<char>(data, kPiece - around));
        if (!count) co_return End::source_failed;
        if (*count == 0) break;
        std::string_view piece(data, *count);
        if (chunked_) {
            std::memcpy(data + *count, "\r\n", kSuffix);
            char* start = put_prefix(data, *count);
            piece =
                std::string_view(start, static_cast<std::size_t>(data - start) + *count + kSuffix);
        }
        auto written = co_await net::write_all(to_, piece);
        if (!written) co_return End::sink_failed;
    }
    co_return End::done;
}

Awaitable<bool> copy_bytes(http::Input& from, net::Stream& to) {
    while (true) {
        if (from.buffer.empty()) {
            from.buffer.release();
            co_await from.stream->wait_readable();
            auto count = co_await from.fill(kPiece);
            if (!count) co_return false;
            if (*count == 0) co_return true;
        }
        auto written = co_await net::write_all(to, from.buffer.view());
        if (!written) co_return false;
        from.buffer.consume(from.buffer.size());
    }
}

}  // namespace opensandbox::egress::http1
