#include "runtime/docker/engine/line_stream.hpp"

namespace opensandbox::runtime::docker {
namespace {

constexpr std::size_t kLinePiece = 16 * 1024;

}  // namespace

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
