#include "base/sparse_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace opensandbox {
namespace {

/// Runs of zeros are looked for in steps of this size, aligned in the file: shorter holes would
/// scatter a file over the disk for little.
constexpr std::uint64_t kStep = std::uint64_t{16} << 10;

Status write_at(int fd, std::span<const char> bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return Error::from_errno(errno, "write");
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return {};
}

}  // namespace

bool is_zero(std::span<const char> bytes) {
    return bytes.empty() || (bytes.front() == 0 &&
                             std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::uint64_t costly_bytes(std::span<const char> bytes) {
    std::uint64_t costly = 0;
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), kStep));
        if (!is_zero(piece)) costly += piece.size();
        bytes = bytes.subspan(piece.size());
    }
    return costly;
}

Result<std::uint64_t> write_sparsely(int fd, std::span<const char> bytes, std::uint64_t offset) {
    std::uint64_t end = 0;
    std::size_t begun = 0;  // of what is still to be written, before `at`
    std::size_t at = 0;
    const auto flush = [&]() -> Status {
        if (begun == at) return {};
        end = offset + at;
        return write_at(fd, bytes.subspan(begun, at - begun), offset + begun);
    };
    while (at < bytes.size()) {
        const std::size_t size =
            std::min<std::size_t>(bytes.size() - at, kStep - (offset + at) % kStep);
        if (is_zero(bytes.subspan(at, size))) {
            if (auto ok = flush(); !ok) return ok.error();
            begun = at + size;
        }
        at += size;
    }
    if (auto ok = flush(); !ok) return ok.error();
    return end;
}

}  // namespace opensandbox
