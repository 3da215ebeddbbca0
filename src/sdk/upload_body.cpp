#include "sdk/upload_body.hpp"

#include <cstring>

namespace opensandbox::sdk {

UploadBody::UploadBody(std::string before, ByteReader& source, std::string after, Progress progress)
    : before_(std::move(before)),
      source_(source),
      after_(std::move(after)),
      progress_(std::move(progress)),
      size_(source.size()) {}

std::optional<std::uint64_t> UploadBody::content_length() const {
    if (!size_) return std::nullopt;
    return before_.size() + *size_ + after_.size();
}

std::size_t UploadBody::take(std::string_view text, std::span<char> into) {
    const std::size_t count = std::min(text.size() - offset_, into.size());
    std::memcpy(into.data(), text.data() + offset_, count);
    offset_ += count;
    return count;
}

opensandbox::Error UploadBody::fail(Error error) {
    failure_ = std::move(error);
    return {opensandbox::ErrorCode::io, failure_->message()};
}

Awaitable<opensandbox::Result<std::size_t>> UploadBody::read_some(std::span<char> into) {
    if (part_ == Part::before) {
        if (offset_ < before_.size()) co_return take(before_, into);
        part_ = Part::source;
    }
    if (part_ == Part::source) {
        auto count = co_await source_.read_some(into);
        if (!count) co_return fail(count.error());
        done_ += *count;
        const bool over = size_ && done_ > *size_;
        const bool short_of = size_ && *count == 0 && done_ < *size_;
        if (over || short_of) {
            co_return fail(Error(ErrorCode::io, "the data changed its size while it was sent: " +
                                                    std::to_string(*size_) +
                                                    " bytes were announced"));
        }
        if (*count > 0) {
            if (progress_) progress_(done_, size_.value_or(0));
            co_return *count;
        }
        part_ = Part::after;
        offset_ = 0;
    }
    co_return take(after_, into);
}

}  // namespace opensandbox::sdk
