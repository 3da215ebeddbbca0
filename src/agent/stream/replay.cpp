#include "agent/stream/replay.hpp"

#include <algorithm>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxSpans = 4096;
constexpr std::size_t kPiece = std::size_t{64} * 1024;

}  // namespace

void Replay::append(EventWriter::Stream kind, std::string_view bytes) {
    if (bytes.empty()) return;
    ring_.append(bytes);
    if (!spans_.empty() && spans_.back().kind == kind) {
        spans_.back().end = ring_.total();
    } else {
        spans_.emplace_back(kind, ring_.total());
    }
    while (spans_.size() > kMaxSpans || spans_.front().end <= ring_.oldest()) {
        forgotten_ = spans_.front().end;
        spans_.pop_front();
    }
}

std::uint64_t Replay::oldest() const {
    return std::max(ring_.oldest(), forgotten_);
}

std::optional<Replay::Piece> Replay::read(std::uint64_t offset) const {
    std::uint64_t from = std::max(offset, oldest());
    auto span = std::ranges::find_if(spans_, [&](const Span& item) { return item.end > from; });
    if (span == spans_.end()) return std::nullopt;
    auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, span->end - from));
    return Piece(span->kind, ring_.read(from, size), from + size);
}

}  // namespace opensandbox::agent
