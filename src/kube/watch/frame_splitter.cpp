#include "kube/watch/frame_splitter.hpp"

namespace opensandbox::kube {

Status FrameSplitter::feed(std::string_view bytes) {
    buffer_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
    buffer_ += bytes;
    const std::size_t last = buffer_.rfind('\n');
    if (buffer_.size() - (last == std::string::npos ? 0 : last + 1) > kMaxFrame) {
        return Error(ErrorCode::too_large, "an event of a watch is larger than " +
                                               std::to_string(kMaxFrame / 1024 / 1024) + " MiB");
    }
    return Status();
}

std::optional<std::string_view> FrameSplitter::next() {
    while (true) {
        const std::size_t end = buffer_.find('\n', searched_);
        if (end == std::string::npos) {
            searched_ = buffer_.size();
            return std::nullopt;
        }
        std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
        if (line.ends_with('\r')) line.remove_suffix(1);
        begin_ = searched_ = end + 1;
        if (!line.empty()) return line;
    }
}

}  // namespace opensandbox::kube
