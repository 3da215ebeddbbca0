#pragma once

#include "http/message.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace opensandbox::test_support {

/// A body that hands out a text in pieces of at most `piece` bytes.
class BodyText final : public http::BodyReader {
  public:
    BodyText(std::string text, std::size_t piece, bool length_known = false)
        : text_(std::move(text)), piece_(piece), length_known_(length_known) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        std::size_t count = std::min({into.size(), piece_, text_.size() - at_});
        if (count > 0) std::memcpy(into.data(), text_.data() + at_, count);
        at_ += count;
        co_return count;
    }
    std::optional<std::uint64_t> content_length() const override {
        if (length_known_) return text_.size();
        return std::nullopt;
    }

  private:
    std::string text_;
    std::size_t piece_;
    bool length_known_;
    std::size_t at_ = 0;
};

}  // namespace opensandbox::test_support
