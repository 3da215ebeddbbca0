#include "image/gzip_output.hpp"

namespace opensandbox::image {
namespace {

constexpr int kLevel = 6;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemory = 8;
constexpr std::size_t kPiece = std::size_t{128} << 10;

}  // namespace

GzipOutput::GzipOutput(ByteSink sink) : sink_(std::move(sink)), buffer_(kPiece) {
    ready_ = deflateInit2(&stream_, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) ==
             Z_OK;
}

GzipOutput::~GzipOutput() {
    if (ready_) deflateEnd(&stream_);
}

Status GzipOutput::deflate_all(int flush) {
    if (!ready_) return Error(ErrorCode::resource_exhausted, "the compressor did not start");
    do {
        stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_out = static_cast<uInt>(buffer_.size());
        int result = ::deflate(&stream_, flush);
        if (result == Z_STREAM_ERROR) return Error(ErrorCode::internal, "the compressor failed");
        std::size_t made = buffer_.size() - stream_.avail_out;
        if (made > 0) {
            if (auto ok = sink_(std::span<const char>(buffer_).first(made)); !ok) return ok;
        }
    } while (stream_.avail_out == 0);
    return {};
}

Status GzipOutput::write(std::span<const char> bytes) {
    constexpr std::size_t most = std::size_t{1} << 30;
    while (!bytes.empty()) {
        auto piece = bytes.first(std::min(bytes.size(), most));
        bytes = bytes.subspan(piece.size());
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
        stream_.avail_in = static_cast<uInt>(piece.size());
        if (auto ok = deflate_all(Z_NO_FLUSH); !ok) return ok;
    }
    return {};
}

Status GzipOutput::finish() {
    stream_.next_in = nullptr;
    stream_.avail_in = 0;
    return deflate_all(Z_FINISH);
}

}  // namespace opensandbox::image
