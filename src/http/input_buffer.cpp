#include "http/input_buffer.hpp"

#include <algorithm>
#include <cstring>

namespace opensandbox::http {

std::span<char> InputBuffer::prepare(std::size_t room) {
    if (capacity_ - end_ < room) {
        std::size_t held = size();
        if (capacity_ - held >= room) {
            std::memmove(data_.get(), data_.get() + begin_, held);
        } else {
            std::size_t grown = std::max(held + room, held * 2);
            std::unique_ptr<char[]> bigger(new char[grown]);
            if (held > 0) std::memcpy(bigger.get(), data_.get() + begin_, held);
            data_ = std::move(bigger);
            capacity_ = grown;
        }
        begin_ = 0;
        end_ = held;
    }
    return {data_.get() + end_, capacity_ - end_};
}

void InputBuffer::consume(std::size_t count) {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
}

void InputBuffer::release() {
    if (!empty()) return;
    data_.reset();
    capacity_ = begin_ = end_ = 0;
}

std::string InputBuffer::take() {
    std::string all(view());
    consume(size());
    release();
    return all;
}

Awaitable<Result<std::size_t>> Input::fill(std::size_t room) {
    auto count = co_await stream->read_some(buffer.prepare(room));
    if (count) buffer.commit(*count);
    co_return count;
}

}  // namespace opensandbox::http
