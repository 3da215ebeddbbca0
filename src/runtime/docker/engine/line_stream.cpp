#include "runtime/docker/engine/line_stream.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

std::string_view trimmed(std::string_view line) {
    constexpr std::string_view kBlank = " \t\r";
    std::size_t first = line.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

constexpr std::size_t kLinePiece = 16 * 1024;

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

DocumentStream::DocumentStream(std::unique_ptr<EngineStream> stream, std::size_t max_line)
    : stream_(std::move(stream)), lines_(max_line), piece_(kLinePiece, '\0') {}

Result<std::optional<json::value>> DocumentStream::parse(std::string_view line) const {
    auto document = json::parse(line);
    if (document) return std::optional<json::value>(std::move(*document));
    return named(Error(ErrorCode::bad_gateway,
                       "sent a line that is no JSON: " + document.error().message()));
}

Awaitable<Result<std::optional<json::value>>> DocumentStream::next() {
    while (true) {
        auto line = lines_.next();
        if (!line) co_return named(Error(ErrorCode::bad_gateway, "sent " + line.error().message()));
        if (*line) co_return parse(**line);
        if (ended_) co_return std::optional<json::value>();
        auto count = co_await stream_->read_some(piece_);
        if (!count) co_return count.error();
        if (*count > 0) {
            lines_.feed(std::string_view(piece_.data(), *count));
            continue;
        }
        ended_ = true;
        // A last line without its end.
        if (!lines_.rest().empty()) lines_.feed("\n");
    }
}

}  // namespace opensandbox::runtime::docker
