#pragma once

#include "base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// Takes apart the stream of a container without a terminal: frames of eight bytes (stream number,
/// three zeros, length in big endian) and their content. Pure; holds nothing but a frame's head.
class LogFrameDecoder {
  public:
    enum class Source : std::uint8_t { in = 0, out = 1, err = 2, system = 3 };
    using Sink = std::function<void(Source, std::string_view)>;

    /// Hands the content to `sink` as it comes, in pieces. `protocol` when the bytes are no frames:
    /// nothing can be decoded after that.
    Status feed(std::string_view bytes, const Sink& sink);
    /// Whether the stream may end here: not inside a frame.
    [[nodiscard]] bool complete() const { return head_size_ == 0 && remaining_ == 0; }

  private:
    static constexpr std::size_t kHead = 8;
    Status begin_frame();

    std::array<char, kHead> head_{};
    std::size_t head_size_ = 0;
    Source source_ = Source::out;
    std::uint32_t remaining_ = 0;
    bool broken_ = false;
};

/// The newest `limit` bytes of a text that is longer.
class NewestBytes {
  public:
    explicit NewestBytes(std::size_t limit) : limit_(limit) {}
    void append(std::string_view bytes);
    [[nodiscard]] bool dropped() const { return dropped_; }
    /// The text; after a drop it begins at a line's begin where one is there.
    [[nodiscard]] std::string take();

  private:
    std::size_t limit_;
    std::string held_;
    bool dropped_ = false;
};

}  // namespace opensandbox::runtime::docker
