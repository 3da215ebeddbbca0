#pragma once

#include "imagebuild/context.hpp"
#include "imagebuild/selection.hpp"

#include <memory>
#include <span>
#include <string>

namespace opensandbox::imagebuild {

/// A selection as a tar stream (pax), owned by root: modes, times, links and contents as the
/// context has them. A single file may be given another name.
class ContextArchive {
  public:
    /// Borrows the context.
    ContextArchive(const Context& context, Selection selection, std::string rename);
    ~ContextArchive();
    ContextArchive(const ContextArchive&) = delete;
    ContextArchive& operator=(const ContextArchive&) = delete;

    /// The next bytes; 0 at the end. Blocks. Errors name the file: it changed or cannot be read.
    Result<std::size_t> read(std::span<char> into);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Whether ADD unpacks the file: a tar, plain or compressed with gzip or zstd. `unsupported` for
/// one compressed otherwise. Blocks.
Result<bool> is_archive(const std::filesystem::path& path);

}  // namespace opensandbox::imagebuild
