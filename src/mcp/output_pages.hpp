#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::mcp {

/// A piece of text that fits an answer.
struct Page {
    std::string text;
    std::optional<std::uint64_t> next;  ///< byte to go on from; empty: that was all
};

/// At most `limit` bytes of `bytes` from `from` on, not cut within a UTF-8 character (so up to
/// three bytes fewer; at least one character).
Page page_of(std::string_view bytes, std::uint64_t from, std::size_t limit);

/// How many bytes from the begin of `bytes` fit `limit` without cutting a character.
std::size_t fitting(std::string_view bytes, std::size_t limit);

/// Bytes as text for JSON: what is no UTF-8 becomes U+FFFD.
std::string as_text(std::string bytes);

enum class OutputStream : unsigned char { standard, error };

/// What commands wrote beyond what their answers could hold, for later calls. Bounded: the oldest
/// command's output goes first.
class KeptOutputs {
  public:
    /// `per_stream`: bytes kept of one stream; `total`: of all that is kept.
    KeptOutputs(std::size_t per_stream, std::size_t total)
        : per_stream_(per_stream), total_(total) {}

    void keep(std::string sandbox_id, std::string execution_id, std::string output,
              std::string errors);
    /// Null when nothing of that command is kept.
    [[nodiscard]] const std::string* find(std::string_view sandbox_id,
                                          std::string_view execution_id, OutputStream which) const;
    [[nodiscard]] std::size_t per_stream() const { return per_stream_; }

  private:
    struct Kept {
        std::string sandbox_id;
        std::string execution_id;
        std::string output;
        std::string errors;
    };
    std::size_t per_stream_;
    std::size_t total_;
    std::size_t size_ = 0;
    std::deque<Kept> kept_;
};

}  // namespace opensandbox::mcp
