#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// Finds the data in a chunked body (RFC 9112 section 7.1). Holds no bytes: the caller shows what
/// has arrived and drops what is reported as used. Chunk extensions are skipped, trailers kept.
class ChunkDecoder {
  public:
    enum class State : std::uint8_t {
        need_more,  ///< `used` bytes were framing; the rest is an unfinished line
        data,       ///< after `used` bytes of framing, data of the current chunk follows
        done,       ///< after `used` bytes the body has ended
        malformed,
    };
    struct Step {
        State state;
        std::size_t used;
    };
    /// Looks at the bytes that follow those already dropped.
    Step next(std::string_view bytes);
    /// Data bytes of the current chunk that were not taken yet.
    [[nodiscard]] std::uint64_t remaining() const { return remaining_; }
    /// The lines between the last chunk and the end, each with its CRLF; 16 KiB at most.
    [[nodiscard]] const std::string& trailer_lines() const { return trailers_; }
    /// Counts data bytes as taken, at most remaining().
    void take(std::uint64_t count);

  private:
    enum class Expect : std::uint8_t { size_line, data, data_end, trailer, end };
    bool read_size(std::string_view line);

    Expect expect_ = Expect::size_line;
    std::uint64_t remaining_ = 0;
    std::string trailers_;
};

}  // namespace opensandbox::http
