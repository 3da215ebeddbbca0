#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/layer_copy.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

constexpr std::size_t kPieceSize = std::size_t{1} << 20;

/// What overlayfs notes in its writable layer about that very place.
bool belongs_to_upper(std::string_view name) {
    constexpr std::array<std::string_view, 5> kLocal{"origin", "impure", "nlink", "uuid", "upper"};
    // Where an ordinary user mounted the overlay, user.* stands in for trusted.*.
    for (const std::string_view prefix : {"trusted.overlay.", "user.overlay."}) {
        if (name.starts_with(prefix))
            return std::ranges::find(kLocal, name.substr(prefix.size())) != kLocal.end();
    }
    return false;
}

Status copy_extended_attributes(int from, int to, const std::string& path) {
    std::array<char, 4096> few;
    std::string many;
    std::string_view names;
    ssize_t size = ::flistxattr(from, few.data(), few.size());
    if (size >= 0) {
        names = {few.data(), static_cast<std::size_t>(size)};
    } else if (errno == ERANGE) {
        many.resize(64 * 1024);
        size = ::flistxattr(from, many.data(), many.size());
        if (size >= 0) names = std::string_view(many).substr(0, static_cast<std::size_t>(size));
    }
    if (size < 0 && errno != EOPNOTSUPP) return last_error(path + ": list its attributes");
    std::vector<char> value;
    while (!names.empty()) {
        const std::string name(names.substr(0, names.find('\0')));
        names.remove_prefix(std::min(names.size(), name.size() + 1));
        if (belongs_to_upper(name)) continue;
        value.resize(64 * 1024);
        const ssize_t length = ::fgetxattr(from, name.c_str(), value.data(), value.size());
        if (length < 0) return last_error(path + ": read attribute " + name);
        if (::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(length), 0) < 0) {
            return last_error(path + ": keep attribute " + name);
        }
    }
    return {};
}

}  // namespace

Status copy_attributes(int from, int to, const struct stat& info, const std::string& path) {
    if (::fchown(to, info.st_uid, info.st_gid) < 0) return last_error(path + ": keep its owner");
    // After the owner: a change of owner clears special bits, and attributes such as capabilities.
    if (::fchmod(to, info.st_mode & 07777) < 0) return last_error(path + ": keep its mode");
    if (auto s = copy_extended_attributes(from, to, path); !s) return s;
    const std::array<timespec, 2> times{info.st_atim, info.st_mtim};
    return check(::futimens(to, times.data()), path + ": keep its times");
}

Status FileCopy::content(int from, int to, const struct stat& info) {
    if (info.st_size == 0) return {};
    if (reflink_) {
        if (::ioctl(to, FICLONE, from) == 0) return {};
        if (errno == ENOSPC || errno == EDQUOT || errno == EIO) return last_error("share blocks");
        // What is wrong with one file alone, such as one in use for swapping, says nothing about
        // the next.
        if (errno != EINVAL && errno != ETXTBSY) reflink_ = false;
    }
    // Blocks of 512 bytes: a file with fewer than its size takes has holes.
    if (info.st_blocks * 512 >= info.st_size) return range(from, to, 0, info.st_size);
    if (::ftruncate(to, info.st_size) < 0) return last_error("set the size");
    off_t at = 0;
    while (at < info.st_size) {
        const off_t begin = ::lseek(from, at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO) return {};
        if (begin < 0) return range(from, to, at, info.st_size);
        off_t end = ::lseek(from, begin, SEEK_HOLE);
        if (end < 0) end = info.st_size;
        if (auto s = range(from, to, begin, std::min(end, info.st_size)); !s) return s;
        at = end;
    }
    return {};
}

Status FileCopy::range(int from, int to, off_t begin, off_t end) {
    off_t in = begin;
    off_t out = begin;
    while (in_kernel_ && in < end) {
        const auto left = static_cast<std::size_t>(end - in);
        const ssize_t copied = ::copy_file_range(from, &in, to, &out, left, 0);
        if (copied > 0) continue;
        if (copied == 0) return Error(ErrorCode::io, "the file became shorter meanwhile");
        if (errno == EINTR) continue;
        if (errno == ENOSPC || errno == EDQUOT || errno == EIO) return last_error("copy");
        in_kernel_ = false;
    }
    std::vector<char> piece;
    while (in < end) {
        piece.resize(kPieceSize);
        const auto wanted = std::min<std::size_t>(kPieceSize, static_cast<std::size_t>(end - in));
        const ssize_t got = ::pread(from, piece.data(), wanted, in);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return last_error("read");
        if (got == 0) return Error(ErrorCode::io, "the file became shorter meanwhile");
        for (ssize_t done = 0; done < got;) {
            const ssize_t put =
                ::pwrite(to, piece.data() + done, static_cast<std::size_t>(got - done), in + done);
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) return last_error("write");
            done += put;
        }
        in += got;
    }
    return {};
}

}  // namespace opensandbox::runtime::native
