#pragma once

#include "net/stream.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// Bytes received and not yet used. Holds memory only while it holds bytes or is being filled.
class InputBuffer {
  public:
    [[nodiscard]] std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
    [[nodiscard]] std::size_t size() const { return end_ - begin_; }
    [[nodiscard]] bool empty() const { return begin_ == end_; }

    /// Room for at least `room` more bytes behind what is held; older views become invalid.
    std::span<char> prepare(std::size_t room);
    /// Counts `count` bytes of what prepare() returned as received.
    void commit(std::size_t count) { end_ += count; }
    /// Drops `count` bytes from the front.
    void consume(std::size_t count);
    /// Frees the memory when nothing is held.
    void release();
    /// Moves everything out.
    std::string take();

  private:
    std::unique_ptr<char[]> data_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

/// A stream with the bytes already read from it.
struct Input {
    std::unique_ptr<net::Stream> stream;
    InputBuffer buffer;

    /// Reads once, at most about `room` bytes, behind what the buffer holds; 0 at the end.
    Awaitable<Result<std::size_t>> fill(std::size_t room);
};

}  // namespace opensandbox::http
