#include "http/incoming_body.hpp"

#include <algorithm>
#include <cstring>

namespace opensandbox::http {
namespace {

constexpr std::size_t kMinFill = 4 * 1024;
constexpr std::size_t kMaxFill = 16 * 1024;
/// Reads of at least this size go around the buffer.
constexpr std::size_t kDirectSize = 4 * 1024;

}  // namespace

std::optional<std::uint64_t> IncomingBody::content_length() const {
    switch (framing_.kind) {
        case Framing::Kind::none: return 0;
        case Framing::Kind::length: return framing_.length;
        default: return std::nullopt;
    }
}

Fields IncomingBody::trailers() const {
    Fields fields;
    if (chunks_.trailer_lines().empty()) return fields;
    if (parse_fields(chunks_.trailer_lines(), fields)) return {};
    return fields;
}

Error IncomingBody::fail(ErrorCode code, std::string_view message) {
    failure_ = Error(code, std::string(message));
    return *failure_;
}

Error IncomingBody::lost(const Error& error) {
    // A read that was cancelled left the connection as it was.
    if (error.code() == ErrorCode::cancelled) return error;
    return fail(errors_.lost, error.message());
}

std::size_t IncomingBody::take_buffered(std::span<char> into) {
    std::size_t count = std::min(into.size(), input_.buffer.size());
    if (count == 0) return 0;
    std::memcpy(into.data(), input_.buffer.view().data(), count);
    input_.buffer.consume(count);
    return count;
}

/// Bytes from the buffer or, when it is empty, from the connection.
Awaitable<Result<std::size_t>> IncomingBody::read_bytes(std::span<char> into) {
    std::size_t held = take_buffered(into);
    if (held > 0) co_return held;
    input_.buffer.release();
    co_return co_await input_.stream->read_some(into);
}

Awaitable<Result<std::size_t>> IncomingBody::read_length(std::span<char> into) {
    if (into.size() > remaining_) into = into.first(static_cast<std::size_t>(remaining_));
    auto count = co_await read_bytes(into);
    if (!count) co_return lost(count.error());
    if (*count == 0) co_return fail(errors_.lost, "the connection ended inside a body");
    remaining_ -= *count;
    done_ = remaining_ == 0;
    co_return *count;
}

Awaitable<Result<std::size_t>> IncomingBody::read_until_close(std::span<char> into) {
    auto count = co_await read_bytes(into);
    if (!count) co_return lost(count.error());
    done_ = *count == 0;
    co_return *count;
}

Awaitable<Result<std::size_t>> IncomingBody::read_chunked(std::span<char> into) {
    while (true) {
        auto step = chunks_.next(input_.buffer.view());
        input_.buffer.consume(step.used);
        if (step.state == ChunkDecoder::State::malformed) {
            co_return fail(errors_.malformed, "malformed chunked body");
        }
        if (step.state == ChunkDecoder::State::done) {
            done_ = true;
            co_return 0;
        }
        bool in_data = step.state == ChunkDecoder::State::data;
        if (in_data && (!input_.buffer.empty() || into.size() >= kDirectSize)) {
            auto piece = into.first(static_cast<std::size_t>(
                std::min<std::uint64_t>(into.size(), chunks_.remaining())));
            auto count = co_await read_bytes(piece);
            if (!count) co_return lost(count.error());
            if (*count == 0) co_return fail(errors_.lost, "the connection ended inside a body");
            chunks_.take(*count);
            co_return *count;
        }
        auto count = co_await input_.fill(std::clamp(into.size(), kMinFill, kMaxFill));
        if (!count) co_return lost(count.error());
        if (*count == 0) co_return fail(errors_.lost, "the connection ended inside a body");
    }
}

Awaitable<Result<std::size_t>> IncomingBody::read_some(std::span<char> into) {
    if (failure_) co_return *failure_;
    if (done_ || into.empty()) co_return 0;
    if (framing_.kind == Framing::Kind::length && framing_.length > limit_) {
        co_return fail(ErrorCode::too_large,
                       "the body is larger than " + std::to_string(limit_) + " bytes");
    }
    if (before_first_read) {
        auto first = std::exchange(before_first_read, nullptr);
        if (input_.buffer.empty()) {
            auto continued = co_await first();
            if (!continued) co_return continued.error();
        }
    }
    if (before_read) co_await before_read();
    Result<std::size_t> count = std::size_t(0);
    switch (framing_.kind) {
        case Framing::Kind::none: break;
        case Framing::Kind::length: count = co_await read_length(into); break;
        case Framing::Kind::chunked: count = co_await read_chunked(into); break;
        case Framing::Kind::until_close: count = co_await read_until_close(into); break;
    }
    if (count) received_ += *count;
    if (count && received_ > limit_) {
        co_return fail(ErrorCode::too_large,
                       "the body is larger than " + std::to_string(limit_) + " bytes");
    }
    co_return count;
}

}  // namespace opensandbox::http
