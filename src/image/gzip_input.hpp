#pragma once

#include "image/input_stream.hpp"

#include <memory>
#include <vector>
#include <zlib.h>

namespace opensandbox::image {

/// Decompresses gzip, one member or several. Done with zlib itself because libarchive does not
/// look at the checksums, and a root file system has no other.
class GzipInput final : public InputStream {
  public:
    explicit GzipInput(std::unique_ptr<InputStream> packed);
    ~GzipInput() override;
    GzipInput(const GzipInput&) = delete;
    GzipInput& operator=(const GzipInput&) = delete;

    /// `invalid_argument` when the data is damaged or ends early. What follows the last member
    /// is ignored, as gzip does.
    Result<std::size_t> read(std::span<char> into) override;

  private:
    /// Moves what is left to the front and reads more behind it; 0 at the source's end.
    Result<std::size_t> refill();
    Result<bool> next_member();

    std::unique_ptr<InputStream> packed_;
    std::vector<char> buffer_;
    z_stream stream_{};
    bool ready_ = false;
    bool ended_ = false;
};

}  // namespace opensandbox::image
