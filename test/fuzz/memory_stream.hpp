#pragma once

#include "net/stream.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace opensandbox::fuzz {

/// A connection whose peer has already said everything: reads hand out a text in pieces of at most
/// `piece` bytes and then the end; writes are counted and dropped.
class MemoryStream final : public net::Stream {
  public:
    MemoryStream(asio::any_io_executor executor, std::string_view text, std::size_t piece,
                 std::string* written = nullptr)
        : executor_(std::move(executor)), text_(text), piece_(piece), written_(written) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        if (closed_) co_return Error(ErrorCode::cancelled, "closed");
        std::size_t count = std::min({into.size(), piece_, text_.size() - at_});
        if (count > 0) std::memcpy(into.data(), text_.data() + at_, count);
        at_ += count;
        co_return count;
    }
    Awaitable<Status> write_all(std::span<const std::string_view> pieces) override {
        if (closed_) co_return Error(ErrorCode::cancelled, "closed");
        for (auto piece : pieces) {
            if (written_ != nullptr) written_->append(piece);
        }
        co_return Status();
    }
    void shutdown_send() override {}
    void close() override { closed_ = true; }
    std::string peer_address() const override { return "127.0.0.1"; }
    asio::any_io_executor executor() override { return executor_; }

  private:
    asio::any_io_executor executor_;
    std::string text_;
    std::size_t piece_;
    std::string* written_;
    std::size_t at_ = 0;
    bool closed_ = false;
};

/// Hands out one connection and then waits until it is closed.
class MemoryListener final : public net::Listener {
  public:
    explicit MemoryListener(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}
    Awaitable<Result<std::unique_ptr<net::Stream>>> accept() override {
        if (stream_) co_return std::move(stream_);
        co_return Error(ErrorCode::cancelled, "no more connections");
    }
    void close() override {}
    std::uint16_t port() const override { return 0; }

  private:
    std::unique_ptr<net::Stream> stream_;
};

}  // namespace opensandbox::fuzz
