#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// Cuts a stream of JSON documents, one a line, into lines. Pure.
class JsonLineSplitter {
  public:
    explicit JsonLineSplitter(std::size_t max_line) : max_line_(max_line) {}

    /// Takes the next bytes of the stream; all lines must have been taken before.
    void feed(std::string_view bytes);
    /// The next whole line without its end, blank ones left out; empty when more bytes are needed.
    /// `too_large` when a line has more than `max_line` bytes: no more can be read then. The view
    /// holds until the next feed().
    Result<std::optional<std::string_view>> next();
    /// After the last byte: what stands behind the last line end.
    [[nodiscard]] std::string_view rest() const;

  private:
    std::size_t max_line_;
    std::string held_;
    std::size_t begin_ = 0;    ///< of what was not returned yet
    std::size_t scanned_ = 0;  ///< no line end before here
};

}  // namespace opensandbox::runtime::docker
