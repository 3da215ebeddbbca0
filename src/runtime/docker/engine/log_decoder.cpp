#include "runtime/docker/engine/log_decoder.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {

Status LogFrameDecoder::begin_frame() {
    auto byte = [this](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(head_[i]));
    };
    bool known = byte(0) <= static_cast<std::uint32_t>(Source::system);
    if (!known || byte(1) != 0 || byte(2) != 0 || byte(3) != 0) {
        broken_ = true;
        return Error(ErrorCode::protocol, "a log frame begins with unknown bytes");
    }
    source_ = static_cast<Source>(byte(0));
    remaining_ = byte(4) << 24U | byte(5) << 16U | byte(6) << 8U | byte(7);
    head_size_ = 0;
    return Status();
}

Status LogFrameDecoder::feed(std::string_view bytes, const Sink& sink) {
    if (broken_) return Error(ErrorCode::protocol, "the log stream is broken");
    while (!bytes.empty()) {
        if (remaining_ > 0) {
            std::string_view content = bytes.substr(0, remaining_);
            sink(source_, content);
            remaining_ -= static_cast<std::uint32_t>(content.size());
            bytes.remove_prefix(content.size());
            continue;
        }
        std::size_t count = std::min(bytes.size(), kHead - head_size_);
        bytes.copy(head_.data() + head_size_, count);
        head_size_ += count;
        bytes.remove_prefix(count);
        if (head_size_ < kHead) continue;
        auto begun = begin_frame();
        if (!begun) return begun.error();
    }
    return Status();
}

void NewestBytes::append(std::string_view bytes) {
    if (bytes.size() > limit_) {
        dropped_ = true;
        held_ = bytes.substr(bytes.size() - limit_);
        return;
    }
    held_ += bytes;
    // Dropping only now and then keeps the cost per byte constant.
    if (held_.size() <= 2 * limit_) return;
    held_.erase(0, held_.size() - limit_);
    dropped_ = true;
}

std::string NewestBytes::take() {
    if (held_.size() > limit_) {
        held_.erase(0, held_.size() - limit_);
        dropped_ = true;
    }
    if (dropped_) {
        std::size_t line_end = held_.find('\n');
        if (line_end != std::string::npos && line_end + 1 < held_.size()) {
            held_.erase(0, line_end + 1);
        }
    }
    return std::move(held_);
}

}  // namespace opensandbox::runtime::docker
