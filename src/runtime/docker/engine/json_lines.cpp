#include "runtime/docker/engine/json_lines.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

std::string_view trimmed(std::string_view line) {
    constexpr std::string_view kBlank = " \t\r";
    std::size_t first = line.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

void JsonLineSplitter::feed(std::string_view bytes) {
    held_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    held_ += bytes;
}

Result<std::optional<std::string_view>> JsonLineSplitter::next() {
    while (true) {
        std::size_t end = held_.find('\n', scanned_);
        std::size_t length = std::min(end, held_.size()) - begin_;
        if (length > max_line_) {
            return Error(ErrorCode::too_large,
                         "a line of more than " + std::to_string(max_line_) + " bytes");
        }
        if (end == std::string::npos) {
            scanned_ = held_.size();
            return std::optional<std::string_view>();
        }
        std::string_view line = trimmed(std::string_view(held_).substr(begin_, length));
        begin_ = end + 1;
        scanned_ = begin_;
        if (!line.empty()) return std::optional<std::string_view>(line);
    }
}

std::string_view JsonLineSplitter::rest() const {
    return trimmed(std::string_view(held_).substr(begin_));
}

}  // namespace opensandbox::runtime::docker
