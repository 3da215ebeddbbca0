#pragma once

#include "opensandbox/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// Splits an event stream into frames, each one JSON document, as its bytes arrive. Two framings
/// (execd contract section 2): documents ended by a blank line, and server-sent events, whose
/// `data:` lines make the document. The first byte that is no space tells which.
class EventStreamParser {
  public:
    /// A frame of more bytes than `max_frame` is `too_large`.
    explicit EventStreamParser(std::size_t max_frame = 64 * 1024 * 1024) : max_frame_(max_frame) {}

    /// Where to put bytes that arrive: `size` bytes at the end of the buffer.
    char* prepare(std::size_t size);
    /// How many of the prepared bytes came.
    void commit(std::size_t size);
    void feed(std::string_view bytes);
    /// No more bytes will come: what is left unterminated is the last frame.
    void finish() { finished_ = true; }

    /// The next frame; false when more bytes are needed (or, after finish(), none is left). `frame`
    /// is valid until the next call of any function.
    Result<bool> next(std::string_view& frame);

  private:
    enum class Framing : unsigned char { unknown, documents, events };

    Result<bool> next_document(std::string_view& frame);
    Result<bool> next_event(std::string_view& frame);
    /// The next line without its end (LF, CR or CRLF); false when it is not complete.
    bool take_line(std::string_view& line);
    [[nodiscard]] std::string_view unread() const {
        return std::string_view(buffer_).substr(begin_, end_ - begin_);
    }
    Error too_large() const;

    std::size_t max_frame_;
    std::string buffer_;
    std::size_t begin_ = 0;    ///< first byte not yet handed out
    std::size_t end_ = 0;      ///< past the last byte received
    std::size_t scanned_ = 0;  ///< unread bytes that hold no frame end for sure
    std::string data_;         ///< `data:` lines of the event being read
    std::string frame_;        ///< the event handed out last
    bool has_data_ = false;
    bool finished_ = false;
    Framing framing_ = Framing::unknown;
};

}  // namespace opensandbox::sdk
