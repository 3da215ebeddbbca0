#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace opensandbox::agent
