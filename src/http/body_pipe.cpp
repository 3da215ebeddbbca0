#include "http/body_pipe.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstring>

namespace opensandbox::http {
namespace {

constexpr std::size_t kPiece = 256 * 1024;
constexpr std::size_t kCapacity = 4 * 1024 * 1024;

}  // namespace

Awaitable<void> BodyPipe::pump(BodyReader& body) {
    while (!is_closed()) {
        if (is_full()) {
            co_await room_.wait();
            continue;
        }
        std::string piece(kPiece, '\0');
        std::span<char> room(piece);
        auto got = co_await body.read_some(room);
        if (!got) {
            fail(got.error());
            co_return;
        }
        piece.resize(*got);
        bool last = piece.empty();
        give(std::move(piece));
        if (last) co_return;
    }
}

void BodyPipe::give(std::string piece) {
    std::lock_guard lock(mutex_);
    if (piece.empty()) {
        ended_ = true;
    } else {
        bytes_ += piece.size();
        pieces_.push_back(std::move(piece));
    }
    filled_.notify_one();
}

void BodyPipe::fail(Error error) {
    std::lock_guard lock(mutex_);
    if (ended_ || error_) return;
    error_ = std::move(error);
    // What is there may unpack to a thousand times as much.
    pieces_.clear();
    bytes_ = front_read_ = 0;
    filled_.notify_one();
}

bool BodyPipe::is_full() {
    std::lock_guard lock(mutex_);
    return bytes_ >= kCapacity && !closed_;
}

bool BodyPipe::is_closed() {
    std::lock_guard lock(mutex_);
    return closed_;
}

Result<std::size_t> BodyPipe::read(std::span<char> into) {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !pieces_.empty() || ended_ || error_; });
    if (pieces_.empty()) {
        if (error_) return *error_;
        return std::size_t(0);
    }
    std::string& front = pieces_.front();
    std::size_t size = std::min(into.size(), front.size() - front_read_);
    std::memcpy(into.data(), front.data() + front_read_, size);
    front_read_ += size;
    bool was_full = bytes_ >= kCapacity;
    bytes_ -= size;
    if (front_read_ == front.size()) {
        pieces_.pop_front();
        front_read_ = 0;
    }
    bool wake = was_full && bytes_ < kCapacity;
    lock.unlock();
    if (wake) asio::post(executor_, [self = shared_from_this()] { self->room_.notify(); });
    return size;
}

void BodyPipe::close() {
    {
        std::lock_guard lock(mutex_);
        closed_ = true;
    }
    asio::post(executor_, [self = shared_from_this()] { self->room_.notify(); });
}

}  // namespace opensandbox::http
