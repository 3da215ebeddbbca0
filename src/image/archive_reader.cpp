#include "image/archive_reader.hpp"

#include <cerrno>
#include <utility>

namespace opensandbox::image {
namespace {

constexpr std::uint64_t kLargestHeader = std::uint64_t{4} << 20;

}  // namespace

ArchiveReader::ArchiveReader(InputStream& from, Kind kind)
    : from_(from), kind_(kind), buffer_(std::size_t{64} << 10), handle_(archive_read_new()) {}

bool ArchiveReader::open() {
    opened_ = true;
    archive* handle = handle_.get();
    if (!handle) return false;
    int status = ARCHIVE_OK;
    auto enable = [&](int result) { status = std::min(status, result); };
    switch (kind_) {
        case Kind::tar: enable(archive_read_support_format_tar(handle)); break;
        case Kind::zstd: enable(archive_read_support_filter_zstd(handle)); break;
    }
    if (kind_ != Kind::tar) enable(archive_read_support_format_raw(handle));
    enable(archive_read_support_format_empty(handle));
    enable(archive_read_set_read_callback(handle, on_read));
    enable(archive_read_set_skip_callback(handle, on_skip));
    enable(archive_read_set_callback_data(handle, this));
    return status >= ARCHIVE_WARN && archive_read_open1(handle) >= ARCHIVE_WARN;
}

la_ssize_t ArchiveReader::on_read(archive* handle, void* self, const void** buffer) {
    auto& reader = *static_cast<ArchiveReader*>(self);
    if (reader.header_bytes_.value_or(0) > kLargestHeader) {
        reader.source_error_ =
            Error(ErrorCode::too_large, "what the archive says of one entry is larger than 4 MiB");
        archive_set_error(handle, EFBIG, "the header is too large");
        return ARCHIVE_FATAL;
    }
    auto count = reader.from_.read(reader.buffer_);
    if (!count) {
        reader.source_error_ = count.error();
        archive_set_error(handle, EIO, "the source failed");
        return ARCHIVE_FATAL;
    }
    if (reader.header_bytes_) *reader.header_bytes_ += *count;
    *buffer = reader.buffer_.data();
    return static_cast<la_ssize_t>(*count);
}

la_int64_t ArchiveReader::on_skip(archive* handle, void* self, la_int64_t request) {
    auto& reader = *static_cast<ArchiveReader*>(self);
    auto count = reader.from_.skip(static_cast<std::uint64_t>(request));
    if (!count) {
        reader.source_error_ = count.error();
        archive_set_error(handle, EIO, "the source failed");
        return ARCHIVE_FATAL;
    }
    return static_cast<la_int64_t>(*count);
}

Error ArchiveReader::failed() {
    if (source_error_) return *source_error_;
    const char* detail = handle_ ? archive_error_string(handle_.get()) : "out of memory";
    std::string what =
        kind_ == Kind::tar ? "not a well-formed tar archive" : "the compressed data is damaged";
    return {ErrorCode::invalid_argument, what + (detail ? ": " + std::string(detail) : "")};
}

Result<archive_entry*> ArchiveReader::next() {
    if (!opened_ && !open()) return failed();
    if (std::exchange(in_entry_, false) && archive_read_data_skip(handle_.get()) < ARCHIVE_WARN) {
        return failed();
    }
    archive_entry* entry = nullptr;
    header_bytes_ = 0;
    int status = archive_read_next_header(handle_.get(), &entry);
    header_bytes_.reset();
    if (status == ARCHIVE_EOF) return static_cast<archive_entry*>(nullptr);
    // A warning is a name outside the locale's character set; its bytes are kept as they are.
    in_entry_ = status == ARCHIVE_OK || status == ARCHIVE_WARN;
    if (in_entry_) return entry;
    return failed();
}

Result<std::size_t> ArchiveReader::read(std::span<char> into) {
    la_ssize_t count = archive_read_data(handle_.get(), into.data(), into.size());
    if (count < 0) return failed();
    return static_cast<std::size_t>(count);
}

Result<std::optional<ArchiveReader::Block>> ArchiveReader::next_block() {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    int status = archive_read_data_block(handle_.get(), &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return std::optional<Block>();
    if (status < ARCHIVE_WARN || offset < 0) return failed();
    Block block;
    block.bytes = {static_cast<const char*>(bytes), size};
    block.offset = static_cast<std::uint64_t>(offset);
    return std::optional<Block>(block);
}

int ArchiveReader::filters() const {
    // The count includes the source itself.
    return archive_filter_count(handle_.get()) - 1;
}

}  // namespace opensandbox::image
