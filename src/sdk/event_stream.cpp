#include "sdk/event_stream.hpp"

#include <cstring>

namespace opensandbox::sdk {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trim(std::string_view text) {
    auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Length of the blank line that ends a document at `at` (LF LF, LF CR LF); 0 when there is none,
/// npos when more bytes are needed to tell.
std::size_t blank_line(std::string_view text, std::size_t at) {
    if (at + 1 >= text.size()) return std::string_view::npos;
    if (text[at + 1] == '\n') return 2;
    if (text[at + 1] != '\r') return 0;
    if (at + 2 >= text.size()) return std::string_view::npos;
    return text[at + 2] == '\n' ? 3 : 0;
}

}  // namespace

Error EventStreamParser::too_large() const {
    return {ErrorCode::too_large,
            "an event has more than " + std::to_string(max_frame_) + " bytes"};
}

char* EventStreamParser::prepare(std::size_t size) {
    if (begin_ == end_) {
        begin_ = end_ = 0;
    } else if (begin_ >= buffer_.size() / 2) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (buffer_.size() - end_ < size) buffer_.resize(std::max(end_ + size, buffer_.size() * 2));
    return buffer_.data() + end_;
}

void EventStreamParser::commit(std::size_t size) {
    end_ += size;
}

void EventStreamParser::feed(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(prepare(bytes.size()), bytes.data(), bytes.size());
    commit(bytes.size());
}

Result<bool> EventStreamParser::next(std::string_view& frame) {
    if (framing_ == Framing::unknown) {
        auto first = unread().find_first_not_of(kSpace);
        if (first == std::string_view::npos) {
            begin_ = end_;
            return false;
        }
        begin_ += first;
        const char byte = buffer_[begin_];
        framing_ = byte == '{' || byte == '[' ? Framing::documents : Framing::events;
    }
    return framing_ == Framing::documents ? next_document(frame) : next_event(frame);
}

Result<bool> EventStreamParser::next_document(std::string_view& frame) {
    for (;;) {
        std::string_view text = unread();
        std::size_t at = text.find('\n', scanned_);
        std::size_t blank = at == std::string_view::npos ? at : blank_line(text, at);
        if (at != std::string_view::npos && blank == 0) {
            scanned_ = at + 1;
            continue;
        }
        if (blank == std::string_view::npos) {
            scanned_ = at == std::string_view::npos ? text.size() : at;
            if (text.size() > max_frame_) return too_large();
            if (!finished_) return false;
            begin_ = end_;
            scanned_ = 0;
            frame = trim(text);
            return !frame.empty();
        }
        begin_ += at + blank;
        scanned_ = 0;
        frame = trim(text.substr(0, at));
        if (frame.size() > max_frame_) return too_large();
        if (!frame.empty()) return true;
    }
}

bool EventStreamParser::take_line(std::string_view& line) {
    std::string_view text = unread();
    std::size_t at = text.find_first_of("\r\n", scanned_);
    if (at == std::string_view::npos || (text[at] == '\r' && at + 1 == text.size() && !finished_)) {
        scanned_ = at == std::string_view::npos ? text.size() : at;
        if (!finished_ || text.empty()) return false;
        line = text;
        begin_ = end_;
        scanned_ = 0;
        return true;
    }
    line = text.substr(0, at);
    const bool pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    begin_ += at + (pair ? 2 : 1);
    scanned_ = 0;
    return true;
}

Result<bool> EventStreamParser::next_event(std::string_view& frame) {
    std::string_view line;
    for (;;) {
        const bool complete = take_line(line);
        if (!complete) {
            if (end_ - begin_ + data_.size() > max_frame_) return too_large();
            if (!finished_ || !has_data_) return false;
        }
        if (!complete || line.empty()) {
            if (!has_data_) continue;
            frame_.swap(data_);
            data_.clear();
            has_data_ = false;
            frame = trim(frame_);
            if (!frame.empty()) return true;
            continue;
        }
        if (!line.starts_with("data:")) continue;  // comments, event, id, retry
        line.remove_prefix(5);
        if (line.starts_with(' ')) line.remove_prefix(1);
        if (data_.size() + line.size() + 1 > max_frame_) return too_large();
        if (has_data_) data_ += '\n';
        data_ += line;
        has_data_ = true;
    }
}

}  // namespace opensandbox::sdk
