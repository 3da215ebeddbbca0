#pragma once

#include "image/input_stream.hpp"

#include <archive.h>

#include <archive_entry.h>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace opensandbox::image {

/// libarchive over an InputStream. Formats and filters are enabled one by one: the `*_all` calls
/// would pull megabytes into the static executable and widen what untrusted bytes can reach.
class ArchiveReader {
  public:
    enum class Kind : std::uint8_t {
        tar,   ///< entries of an uncompressed tar stream
        zstd,  ///< one entry: the decompressed bytes
    };

    ArchiveReader(InputStream& from, Kind kind);
    ArchiveReader(const ArchiveReader&) = delete;
    ArchiveReader& operator=(const ArchiveReader&) = delete;

    /// The next entry, valid until the next call; null at the end. What describes one entry, its
    /// map of holes among it, is held in memory several times over: of more than 4 MiB it is an
    /// error.
    Result<archive_entry*> next();
    /// Data of the current entry, holes as zeros; 0 at its end.
    Result<std::size_t> read(std::span<char> into);

    /// A piece of the current entry's data: `bytes` belong at `offset`, what lies between pieces
    /// is a hole. `bytes` live until the next call.
    struct Block {
        std::span<const char> bytes;
        std::uint64_t offset = 0;
    };
    /// Empty at the end of the entry.
    Result<std::optional<Block>> next_block();

    /// How many decompressors stand before the format, known after the first `next`.
    [[nodiscard]] int filters() const;

  private:
    struct Free {
        void operator()(archive* handle) const { archive_read_free(handle); }
    };
    static la_ssize_t on_read(archive* handle, void* self, const void** buffer);
    static la_int64_t on_skip(archive* handle, void* self, la_int64_t request);
    Error failed();
    bool open();

    InputStream& from_;
    Kind kind_;
    std::vector<char> buffer_;
    std::optional<Error> source_error_;
    bool opened_ = false;
    bool in_entry_ = false;                      ///< its data may still have to be passed over
    std::optional<std::uint64_t> header_bytes_;  ///< read for the header that is being read
    std::unique_ptr<archive, Free> handle_;
};

/// The data of the reader's current entry as a stream.
class EntryInput final : public InputStream {
  public:
    explicit EntryInput(ArchiveReader& reader) : reader_(reader) {}
    Result<std::size_t> read(std::span<char> into) override { return reader_.read(into); }

  private:
    ArchiveReader& reader_;
};

}  // namespace opensandbox::image
