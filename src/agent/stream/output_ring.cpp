#include "agent/stream/output_ring.hpp"

#include <algorithm>

namespace opensandbox::agent {

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

}  // namespace opensandbox::agent
