#include "agent/stream/replay.hpp"

#include <algorithm>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxSpans = 4096;
constexpr std::size_t kPiece = std::size_t{64} * 1024;

}  // namespace

void OutputRing::append(std::string_view bytes) {
    total_ += bytes.size();
    if (bytes.size() > capacity_) bytes.remove_prefix(bytes.size() - capacity_);
    std::size_t fits = std::min(bytes.size(), capacity_ - bytes_.size());
    bytes_.append(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    while (!bytes.empty()) {
        std::size_t size = std::min(bytes.size(), bytes_.size() - begin_);
        bytes_.replace(begin_, size, bytes.substr(0, size));
        begin_ = (begin_ + size) % bytes_.size();
        bytes.remove_prefix(size);
    }
}

std::string OutputRing::read(std::uint64_t offset, std::size_t limit) const {
    std::uint64_t from = std::max(offset, oldest());
    if (from >= total_) return {};
    auto skipped = static_cast<std::size_t>(from - oldest());
    std::size_t wanted = std::min(limit, bytes_.size() - skipped);
    std::size_t at = (begin_ + skipped) % bytes_.size();
    std::string out = bytes_.substr(at, wanted);
    if (out.size() < wanted) out.append(bytes_, 0, wanted - out.size());
    return out;
}

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
