#include "image/archive_writer.hpp"

#include "image/budget.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::image {
namespace {

constexpr std::array<char, std::size_t{64} << 10> kZeros{};

}  // namespace

ArchiveWriter::~ArchiveWriter() {
    dropping_ = true;
    if (opened_ && !ended_) {
        // Freed in the midst of a file, libarchive would first make up all that is missing of it.
        archive_write_fail(handle_);
        // What opening allocated is freed by closing alone.
        archive_write_close(handle_);
    }
    if (handle_) archive_write_free(handle_);
}

la_ssize_t ArchiveWriter::on_write(archive*, void* self, const void* bytes, std::size_t size) {
    auto& writer = *static_cast<ArchiveWriter*>(self);
    if (!writer.dropping_) writer.buffer_.append(static_cast<const char*>(bytes), size);
    return static_cast<la_ssize_t>(size);
}

Status ArchiveWriter::start() {
    handle_ = archive_write_new();
    opened_ =
        handle_ && archive_write_set_format_pax(handle_) == ARCHIVE_OK &&
        archive_write_set_options(handle_, "hdrcharset=BINARY,xattrheader=SCHILY") == ARCHIVE_OK &&
        archive_write_set_bytes_per_block(handle_, 0) == ARCHIVE_OK &&
        archive_write_open(handle_, this, nullptr, on_write, nullptr) == ARCHIVE_OK;
    if (opened_) return {};
    return Error(ErrorCode::internal, "the archive writer did not start");
}

Error ArchiveWriter::failed(std::string_view path) const {
    const char* detail = archive_error_string(handle_);
    return {ErrorCode::io, "archive " + in_quotes(path) + ": " + (detail ? detail : "failed")};
}

Status ArchiveWriter::add(archive_entry* entry, std::string_view path) {
    return archive_write_header(handle_, entry) < ARCHIVE_WARN ? Status(failed(path)) : Status();
}

Status ArchiveWriter::data(std::span<const char> bytes, std::string_view path) {
    const la_ssize_t count = archive_write_data(handle_, bytes.data(), bytes.size());
    return std::cmp_equal(count, bytes.size()) ? Status() : Status(failed(path));
}

Status ArchiveWriter::hole(std::uint64_t size, std::string_view path) {
    while (size > 0) {
        const std::size_t piece = std::min<std::uint64_t>(size, kZeros.size());
        // Of a hole at the end of a file fewer are taken than were given.
        if (archive_write_data(handle_, kZeros.data(), piece) < 0) return failed(path);
        size -= piece;
    }
    return {};
}

Status ArchiveWriter::end() {
    ended_ = true;
    return archive_write_close(handle_) == ARCHIVE_OK ? Status() : Status(failed("end"));
}

std::size_t ArchiveWriter::take(std::span<char> into) {
    const std::size_t count = buffer_.copy(into.data(), into.size(), taken_);
    taken_ += count;
    if (taken_ == buffer_.size()) {
        buffer_.clear();
        taken_ = 0;
    }
    return count;
}

}  // namespace opensandbox::image
