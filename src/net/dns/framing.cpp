#include "net/dns/framing.hpp"

#include <span>

namespace opensandbox::net::dns {

namespace {

/// Reads exactly so many bytes.
Awaitable<Result<std::string>> read_exactly(Stream& stream, std::size_t size) {
    std::string out(size, '\0');
    std::size_t have = 0;
    while (have < size) {
        const std::span<char> rest(out.data() + have, size - have);
        auto got = co_await stream.read_some(rest);
        if (!got) co_return got.error();
        if (*got == 0) co_return Error(ErrorCode::cancelled, "the connection ended");
        have += *got;
    }
    co_return out;
}

}  // namespace

std::string framed(std::string_view message) {
    std::string out;
    out.reserve(message.size() + 2);
    out += static_cast<char>(message.size() >> 8);
    out += static_cast<char>(message.size() & 0xff);
    out += message;
    return out;
}

Awaitable<Result<std::string>> read_framed(Stream& stream, std::size_t limit) {
    auto head = co_await read_exactly(stream, 2);
    if (!head) co_return head.error();
    const auto high = static_cast<unsigned char>((*head)[0]);
    const auto low = static_cast<unsigned char>((*head)[1]);
    const std::size_t size = static_cast<std::size_t>(high) << 8 | low;
    if (size > limit) co_return Error(ErrorCode::too_large, "dns message: too long");
    co_return co_await read_exactly(stream, size);
}

}  // namespace opensandbox::net::dns
