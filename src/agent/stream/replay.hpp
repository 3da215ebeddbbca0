#pragma once

#include "agent/stream/event.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// The last bytes of an endless text. Takes memory as text comes, up to its capacity. Offsets count
/// every byte ever appended. Pure.
class OutputRing {
  public:
    explicit OutputRing(std::size_t capacity) : capacity_(capacity) {}
    void append(std::string_view bytes);
    /// What is kept, oldest first.
    [[nodiscard]] std::string contents() const { return read(oldest(), capacity_); }
    /// At most `limit` bytes from `offset` on, or from the oldest byte kept when that is later.
    [[nodiscard]] std::string read(std::uint64_t offset, std::size_t limit) const;
    /// Offset of the oldest byte kept.
    [[nodiscard]] std::uint64_t oldest() const { return total_ - bytes_.size(); }
    /// Bytes ever appended.
    [[nodiscard]] std::uint64_t total() const { return total_; }

  private:
    std::size_t capacity_;
    std::string bytes_;
    std::size_t begin_ = 0;  ///< where the oldest byte is, once full
    std::uint64_t total_ = 0;
};

/// The latest output of one run, both streams in the order read, so that a reader whose connection
/// broke can go on where it stopped. Offsets count the bytes of both streams together. Pure.
class Replay {
  public:
    explicit Replay(std::size_t capacity) : ring_(capacity) {}

    void append(EventWriter::Stream kind, std::string_view bytes);

    struct Piece {
        EventWriter::Stream kind;
        std::string bytes;
        std::uint64_t next;  ///< the offset behind it
    };
    /// The bytes of one stream that stand at `offset` (or at the oldest byte kept); empty at the
    /// end. At most 64 KiB.
    [[nodiscard]] std::optional<Piece> read(std::uint64_t offset) const;

    [[nodiscard]] std::uint64_t oldest() const;
    [[nodiscard]] std::uint64_t total() const { return ring_.total(); }

  private:
    struct Span {
        EventWriter::Stream kind;
        std::uint64_t end;
    };
    OutputRing ring_;
    std::deque<Span> spans_;  ///< whose bytes they are, oldest first; bounded like the bytes
    std::uint64_t forgotten_ = 0;
};

}  // namespace opensandbox::agent
