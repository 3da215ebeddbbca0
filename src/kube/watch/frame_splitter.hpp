#pragma once

#include "base/error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::kube {

/// Cuts a stream of JSON documents, each on a line of its own, into these lines.
class FrameSplitter {
  public:
    static constexpr std::size_t kMaxFrame = std::size_t{8} * 1024 * 1024;

    /// Takes the next bytes of the stream. `too_large` when a line is longer than kMaxFrame: the
    /// stream is then of no use any more.
    Status feed(std::string_view bytes);
    /// The next whole line, without its end; empty lines are left out. Valid until the next call.
    std::optional<std::string_view> next();

  private:
    std::string buffer_;
    std::size_t begin_ = 0;     ///< of what was not given out
    std::size_t searched_ = 0;  ///< up to here is no further end of a line
};

}  // namespace opensandbox::kube
