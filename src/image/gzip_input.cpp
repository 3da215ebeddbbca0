#include "image/gzip_input.hpp"

#include <cstring>

namespace opensandbox::image {
namespace {

constexpr int kGzipOnly = MAX_WBITS + 16;

Error damaged(const char* detail) {
    return {ErrorCode::invalid_argument,
            "the gzip data is damaged: " + std::string(detail ? detail : "it does not decode")};
}

}  // namespace

GzipInput::GzipInput(std::unique_ptr<InputStream> packed)
    : packed_(std::move(packed)), buffer_(std::size_t{64} << 10) {
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
}

GzipInput::~GzipInput() {
    inflateEnd(&stream_);
}

Result<std::size_t> GzipInput::refill() {
    std::size_t left = stream_.avail_in;
    std::memmove(buffer_.data(), stream_.next_in, left);
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    auto count = packed_->read(std::span(buffer_).subspan(left));
    if (count) stream_.avail_in += static_cast<uInt>(*count);
    return count;
}

Result<bool> GzipInput::next_member() {
    while (stream_.avail_in < 2) {
        auto count = refill();
        if (!count) return count.error();
        if (*count == 0) return false;
    }
    bool more = stream_.next_in[0] == 0x1f && stream_.next_in[1] == 0x8b;
    return more && inflateReset(&stream_) == Z_OK;
}

Result<std::size_t> GzipInput::read(std::span<char> into) {
    if (!ready_) return Error(ErrorCode::resource_exhausted, "no memory to decompress");
    if (ended_ || into.empty()) return std::size_t{0};
    auto room = static_cast<uInt>(std::min(into.size(), std::size_t{1} << 20));
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
        if (stream_.avail_in == 0) {
            auto count = refill();
            if (!count) return count;
            if (*count == 0) return damaged("it ends too early");
        }
        int result = inflate(&stream_, Z_NO_FLUSH);
        if (result == Z_STREAM_END) {
            auto more = next_member();
            if (!more) return more.error();
            ended_ = !*more;
            if (ended_) break;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return damaged(stream_.msg);
        }
    }
    return std::size_t{room - stream_.avail_out};
}

}  // namespace opensandbox::image
