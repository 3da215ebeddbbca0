#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace opensandbox::agent {

/// A piece of output and where the next one begins.
struct OutputPage {
    std::string bytes;
    std::uint64_t next = 0;
};

/// The output of one background command: a file that the command writes by itself, so that neither
/// the agent's time nor its memory depends on how much there is. Offsets count every byte ever
/// written; of long output the beginning is given back to the disk.
class OutputFile {
  public:
    /// `path` is empty for a file without a name, which then stays open.
    OutputFile(UniqueFd fd, std::string path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    /// For the command's standard output and error; -1 once released.
    [[nodiscard]] int descriptor() const { return fd_.get(); }
    /// The command ended: keeps no descriptor open for it.
    void release();
    /// At most `limit` bytes from `cursor` on (or from the oldest byte that is kept). Does not cut
    /// a UTF-8 character; with `growing` an incomplete one at the end of the file waits.
    Result<OutputPage> read(std::uint64_t cursor, std::size_t limit, bool growing);
    /// Keeps about the last `limit` bytes. False when there is nothing to do it with.
    bool trim(std::uint64_t limit);

  private:
    UniqueFd fd_;
    std::string path_;
    std::uint64_t base_ = 0;  ///< offset of the oldest byte kept
};

/// The private directory (mode 0700 below TMPDIR) of output files. Made at first use, made anew
/// when someone removed it, removed with the agent.
class OutputDirectory {
  public:
    explicit OutputDirectory(std::string parent) : parent_(std::move(parent)) {}
    OutputDirectory(const OutputDirectory&) = delete;
    OutputDirectory& operator=(const OutputDirectory&) = delete;
    ~OutputDirectory();

    /// A new empty file; where no directory is writable, one that lives in memory.
    Result<std::shared_ptr<OutputFile>> create(const std::string& name);

  private:
    std::string parent_;
    std::string path_;
};

}  // namespace opensandbox::agent
