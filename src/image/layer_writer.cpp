#include "image/layer_writer.hpp"

#include "base/digest.hpp"
#include "base/unique_fd.hpp"
#include "image/input_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <vector>
#include <zlib.h>

namespace opensandbox::image {

namespace {

constexpr int kLevel = 6;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemory = 8;
constexpr std::size_t kPiece = std::size_t{128} << 10;

/// Compresses what is written and passes it on. The same bytes give the same result: the header
/// has no name and no time.
class GzipOutput {
  public:
    explicit GzipOutput(ByteSink sink);
    ~GzipOutput();
    GzipOutput(const GzipOutput&) = delete;
    GzipOutput& operator=(const GzipOutput&) = delete;

    Status write(std::span<const char> bytes);
    /// The rest. Nothing may be written afterwards.
    Status finish();

  private:
    Status deflate_all(int flush);

    ByteSink sink_;
    std::vector<char> buffer_;
    z_stream stream_{};
    bool ready_ = false;
};

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
    constexpr std::size_t kMost = std::size_t{1} << 30;
    while (!bytes.empty()) {
        auto piece = bytes.first(std::min(bytes.size(), kMost));
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

}  // namespace

Status write_layer(const std::filesystem::path& directory, const ByteSink& sink,
                   std::stop_token stop) {
    return write_archive(directory, sink, DirectoryArchive::Form::layer, std::move(stop));
}

Result<LayerBlob> write_layer_blob(const std::filesystem::path& directory,
                                   const std::filesystem::path& file, std::stop_token stop) {
    UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return Error::from_errno(errno, "make " + file.string());
    LayerBlob blob;
    Sha256 packed_hash, tar_hash;
    GzipOutput gzip([&](std::span<const char> bytes) {
        packed_hash.update(bytes);
        blob.size += bytes.size();
        return write_all(fd.get(), bytes);
    });
    ByteSink sink = [&](std::span<const char> bytes) -> Status {
        if (stop.stop_requested()) return Error(ErrorCode::cancelled, "packing was broken off");
        tar_hash.update(bytes);
        return gzip.write(bytes);
    };
    auto written = write_layer(directory, sink, stop);
    if (!written) return written.error();
    if (auto ok = gzip.finish(); !ok) return ok.error();
    blob.diff_id = tar_hash.finish();
    blob.hex = packed_hash.finish();
    return blob;
}

}  // namespace opensandbox::image
