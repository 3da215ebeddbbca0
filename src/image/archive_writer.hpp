#pragma once

#include "base/error.hpp"

#include <archive.h>

#include <archive_entry.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::image {

struct FreeEntry {
    void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
using EntryPointer = std::unique_ptr<archive_entry, FreeEntry>;

/// Writes one tar stream (pax; names as bytes, attributes as SCHILY.xattr), which is taken from it
/// piece by piece. May be destroyed at any point: nothing more is made of an archive that is not
/// ended. `path` is for messages.
class ArchiveWriter {
  public:
    ArchiveWriter() = default;
    ArchiveWriter(const ArchiveWriter&) = delete;
    ArchiveWriter& operator=(const ArchiveWriter&) = delete;
    ~ArchiveWriter();

    Status start();
    Status add(archive_entry* entry, std::string_view path);
    /// Content of the entry that was added last.
    Status data(std::span<const char> bytes, std::string_view path);
    /// So many bytes of it that are no data, as the entry was told.
    Status hole(std::uint64_t size, std::string_view path);
    Status end();

    /// Whether bytes wait to be taken.
    [[nodiscard]] bool has_bytes() const { return taken_ < buffer_.size(); }
    std::size_t take(std::span<char> into);

  private:
    static la_ssize_t on_write(archive* handle, void* self, const void* bytes, std::size_t size);
    [[nodiscard]] Error failed(std::string_view path) const;

    archive* handle_ = nullptr;
    bool opened_ = false;
    bool ended_ = false;
    bool dropping_ = false;
    std::string buffer_;
    std::size_t taken_ = 0;
};

}  // namespace opensandbox::image
