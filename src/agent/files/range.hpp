#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// What a Range header asks of a file (execd contract 6.7).
struct ByteRange {
    enum class Kind : unsigned char {
        whole,          ///< no range: 200
        part,           ///< 206 with `first` and `length`
        unsatisfiable,  ///< begins behind the end: 416 with the size
        malformed,      ///< 416
    };
    Kind kind = Kind::whole;
    std::uint64_t first = 0;
    std::uint64_t length = 0;
};

/// Reads "bytes=a-b", "bytes=a-", "bytes=-n" against a file of `size` bytes. Of several ranges the
/// first one counts; its end is clamped to the size. Pure.
ByteRange parse_range(std::string_view header, std::uint64_t size);

/// The date of an HTTP header ("Sun, 06 Nov 1994 08:49:37 GMT"), to and from. Pure.
std::string to_http_date(std::int64_t seconds);
std::optional<std::int64_t> parse_http_date(std::string_view text);

/// Cuts the lines `offset` (from 1) to `offset + limit - 1` out of a text that comes in pieces: CR
/// and LF trimmed at line ends, joined by LF, none after the last (execd contract 6.7). Pure.
class LineWindow {
  public:
    LineWindow(std::uint64_t offset, std::uint64_t limit) : skip_(offset - 1), left_(limit) {}

    /// Appends to `out` what of `bytes` is inside.
    void feed(std::string_view bytes, std::string& out);
    /// Nothing that follows is inside.
    [[nodiscard]] bool done() const { return left_ == 0; }

  private:
    void begin_line(std::string& out);

    std::uint64_t skip_;
    std::uint64_t left_;
    std::uint64_t returns_ = 0;  ///< CRs that may be part of a line end
    bool in_line_ = false;
    bool any_line_ = false;
};

}  // namespace opensandbox::agent
