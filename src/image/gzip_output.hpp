#pragma once

#include "image/directory_archive.hpp"

#include <vector>
#include <zlib.h>

namespace opensandbox::image {

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

}  // namespace opensandbox::image
