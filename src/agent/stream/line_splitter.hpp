#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Which text an output event carries (execd contract 0 and 2.3).
enum class LineForm : unsigned char {
    exact,     ///< terminators kept: all texts together are the bytes of the stream (1.1.1)
    stripped,  ///< terminators cut off, a blank line is "\n" (clients before 1.1)
};

/// Cuts a byte stream into the texts of output events: one line, one text. LF, CRLF and a lone CR
/// end a line; a CR at the end of what is known waits for the next byte. A character is never cut.
/// Memory stays below twice `max_fragment`. Pure.
class LineSplitter {
  public:
    using Emit = std::function<void(std::string_view text)>;

    /// `max_fragment`, bytes, at least 8: longer lines come in several texts.
    explicit LineSplitter(LineForm form, std::size_t max_fragment = std::size_t{64} * 1024)
        : form_(form), max_fragment_(max_fragment) {}

    /// Takes the next bytes and emits every line that they end.
    void feed(std::string_view bytes, const Emit& emit);
    /// Nothing came for a while: emits what an unfinished line has so far (exact form only).
    void flush_idle(const Emit& emit);
    /// The stream ended: emits all that is left.
    void finish(const Emit& emit);
    /// Whether flush_idle() would emit something.
    [[nodiscard]] bool has_fragment() const;

  private:
    void emit_line(std::string_view line, const Emit& emit) const;
    void append(std::string_view bytes, const Emit& emit);
    [[nodiscard]] std::size_t cut_of(std::string_view text) const;

    LineForm form_;
    std::size_t max_fragment_;
    std::string pending_;       ///< the unfinished line
    bool held_return_ = false;  ///< pending_ ends with a CR that may be half of a CRLF
};

}  // namespace opensandbox::agent
