#include "image/archived_file.hpp"

#include "image/budget.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace opensandbox::image {
namespace {

constexpr std::size_t kLargestPiece = std::size_t{256} << 10;
/// Zeros of a hole that are passed over at a time: whoever reads can stop in between.
constexpr std::uint64_t kLargestStep = std::uint64_t{1} << 30;
/// Of zeros that are written.
constexpr std::uint64_t kLargestZeros = std::uint64_t{1} << 20;
/// Naming a smaller one costs more than it saves.
constexpr std::uint64_t kSmallestHole = std::uint64_t{64} << 10;
/// Behind so many pieces of data the rest counts as data, so that a file of nothing but holes and
/// crumbs takes no memory.
constexpr std::size_t kMostExtents = 10'000;

}  // namespace

ArchivedFile::ArchivedFile(UniqueFd file, const struct stat& status, std::string path, Holes holes)
    : file_(std::move(file)),
      path_(std::move(path)),
      size_(static_cast<std::uint64_t>(status.st_size)),
      holes_(holes) {
    // Blocks of 512 bytes: a file with fewer than its size takes has holes.
    if (static_cast<std::uint64_t>(status.st_blocks) * 512 < size_) {
        find_data();
    } else if (size_ > 0) {
        data_.push_back({0, size_});
    }
}

void ArchivedFile::find_data() {
    std::uint64_t at = 0;
    while (at < size_) {
        const off_t begin = ::lseek(file_.get(), static_cast<off_t>(at), SEEK_DATA);
        if (begin < 0 && errno == ENXIO) break;
        const off_t end = begin < 0 ? -1 : ::lseek(file_.get(), begin, SEEK_HOLE);
        Extent found;
        found.begin = begin < 0 ? at : static_cast<std::uint64_t>(begin);
        found.end = end < 0 ? size_ : std::min(size_, static_cast<std::uint64_t>(end));
        if (found.begin >= size_) break;
        at = found.end;
        if (data_.empty() && found.begin < kSmallestHole) found.begin = 0;
        if (!data_.empty() && found.begin - data_.back().end < kSmallestHole) {
            data_.back().end = found.end;
        } else if (data_.size() == kMostExtents) {
            data_.back().end = at = size_;
        } else {
            data_.push_back(found);
        }
    }
    if (!data_.empty() && size_ - data_.back().end < kSmallestHole) data_.back().end = size_;
}

void ArchivedFile::describe(archive_entry* entry) const {
    if (holes_ == Holes::written || size_ == 0) return;
    if (data_.size() == 1 && data_[0].begin == 0 && data_[0].end == size_) return;
    for (const Extent& extent : data_) {
        archive_entry_sparse_add_entry(entry, static_cast<la_int64_t>(extent.begin),
                                       static_cast<la_int64_t>(extent.end - extent.begin));
    }
    if (data_.empty()) archive_entry_sparse_add_entry(entry, 0, 0);
}

Status ArchivedFile::write_some(ArchiveWriter& writer) {
    if (at_ == size_) {
        file_.reset();
        return {};
    }
    if (next_ < data_.size() && at_ == data_[next_].end) ++next_;
    const std::uint64_t data_from = next_ < data_.size() ? data_[next_].begin : size_;
    if (at_ < data_from) {
        const std::uint64_t most = holes_ == Holes::kept ? kLargestStep : kLargestZeros;
        const std::uint64_t step = std::min(data_from - at_, most);
        at_ += step;
        return writer.hole(step, path_);
    }
    piece_.resize(std::min<std::uint64_t>(kLargestPiece, data_[next_].end - at_));
    const ssize_t count =
        ::pread(file_.get(), piece_.data(), piece_.size(), static_cast<off_t>(at_));
    if (count < 0 && errno == EINTR) return {};
    if (count < 0) {
        const int number = errno;
        return Error::from_errno(number, "read " + in_quotes(path_));
    }
    if (count == 0) {
        return Error(ErrorCode::conflict, in_quotes(path_) + " became shorter while it was read");
    }
    at_ += static_cast<std::uint64_t>(count);
    return writer.data(std::span<const char>(piece_).first(static_cast<std::size_t>(count)), path_);
}

}  // namespace opensandbox::image
