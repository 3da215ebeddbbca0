#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "image/archive_writer.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

namespace opensandbox::image {

/// The content of a regular file on its way into an archive. Its holes are not read.
class ArchivedFile {
  public:
    enum class Holes : std::uint8_t {
        kept,     ///< the archive names them (GNU's sparse format 1.0 for pax) and leaves them out
        written,  ///< as zeros, for readers that know no holes
    };

    ArchivedFile() = default;
    /// `status` is of `file`; `path` is for messages.
    ArchivedFile(UniqueFd file, const struct stat& status, std::string path, Holes holes);

    [[nodiscard]] bool open() const { return static_cast<bool>(file_); }
    /// Tells the entry, which has its size, of the holes.
    void describe(archive_entry* entry) const;
    /// The next piece of the content, after the entry; closes the file at its end. Blocks on the
    /// disk. `conflict` when the file became shorter.
    Status write_some(ArchiveWriter& writer);

  private:
    struct Extent {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    void find_data();

    UniqueFd file_;
    std::string path_;
    std::uint64_t size_ = 0;
    std::uint64_t at_ = 0;
    Holes holes_ = Holes::kept;
    std::vector<Extent> data_;  ///< what is no hole, in order
    std::size_t next_ = 0;      ///< of data_
    std::vector<char> piece_;
};

}  // namespace opensandbox::image
