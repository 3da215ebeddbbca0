#include "image/layer_writer.hpp"

#include "base/digest.hpp"
#include "base/unique_fd.hpp"
#include "image/gzip_output.hpp"
#include "image/input_stream.hpp"

#include <cerrno>
#include <fcntl.h>

namespace opensandbox::image {

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
