#include "agent/files/operations.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/files/tree_walk.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

Status copy_content(const std::string& from, int out, const std::string& to) {
    UniqueFd in(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!in) return Error::from_errno(errno, "read " + from);
    while (true) {
        ssize_t copied =
            ::copy_file_range(in.get(), nullptr, out, nullptr, std::size_t{1} << 30, 0);
        if (copied == 0) break;
        if (copied < 0 && errno == EINTR) continue;
        if (copied < 0) break;
    }
    // Where the kernel cannot copy by itself, and for what is left.
    std::string piece(std::size_t{256} * 1024, '\0');
    while (true) {
        ssize_t got = ::read(in.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, "read " + from);
        if (got == 0) return {};
        std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
        if (Status put = write_fully(out, bytes, to); !put) return put;
    }
}

Status keep_attributes(const std::string& to, const struct stat& info) {
    if (::lchown(to.c_str(), info.st_uid, info.st_gid) != 0 && errno != EPERM) {
        return Error::from_errno(errno, "keep owner of " + to);
    }
    if (!S_ISLNK(info.st_mode) && ::chmod(to.c_str(), info.st_mode & 07777) != 0) {
        return Error::from_errno(errno, "keep mode of " + to);
    }
    std::array<timespec, 2> times{info.st_atim, info.st_mtim};
    ::utimensat(AT_FDCWD, to.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
    return {};
}

Status copy_one(const std::string& from, const std::string& to, const struct stat& info) {
    if (S_ISDIR(info.st_mode)) {
        if (::mkdir(to.c_str(), 0700) != 0) return Error::from_errno(errno, "make " + to);
        return {};
    }
    if (S_ISLNK(info.st_mode)) {
        std::array<char, PATH_MAX> target{};
        ssize_t size = ::readlink(from.c_str(), target.data(), target.size() - 1);
        if (size < 0 || ::symlink(target.data(), to.c_str()) != 0) {
            return Error::from_errno(errno, "copy link " + from);
        }
    } else if (S_ISREG(info.st_mode)) {
        UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!out) return Error::from_errno(errno, "make " + to);
        if (Status copied = copy_content(from, out.get(), to); !copied) return copied;
    } else if (::mknod(to.c_str(), info.st_mode & (S_IFMT | 07777), info.st_rdev) != 0) {
        return Error::from_errno(errno, "copy " + from);
    }
    return keep_attributes(to, info);
}

Status copy_tree(const std::string& from, const std::string& to) {
    struct stat info{};
    if (::lstat(from.c_str(), &info) != 0) return Error::from_errno(errno, from);
    if (Status copied = copy_one(from, to, info); !copied) return copied;
    if (!S_ISDIR(info.st_mode)) return {};
    // Directories get their attributes last: filling them needs write permission and changes times.
    std::vector<std::pair<std::string, struct stat>> directories{{to, info}};
    TreeWalk walk(from, PATH_MAX);
    while (const TreeWalk::Entry* entry = walk.next()) {
        if (::lstat(entry->path.c_str(), &info) != 0) return Error::from_errno(errno, entry->path);
        std::string copy = to + entry->path.substr(from.size());
        if (Status copied = copy_one(entry->path, copy, info); !copied) return copied;
        if (S_ISDIR(info.st_mode)) directories.emplace_back(std::move(copy), info);
    }
    while (!directories.empty()) {
        Status kept = keep_attributes(directories.back().first, directories.back().second);
        if (!kept) return kept;
        directories.pop_back();
    }
    return {};
}

Status move_by_copy(const std::string& from, const std::string& to) {
    std::error_code ignored;
    if (Status copied = copy_tree(from, to); !copied) {
        std::filesystem::remove_all(to, ignored);
        return copied;
    }
    std::error_code failure;
    std::filesystem::remove_all(from, failure);
    if (failure) return Error::from_errno(failure.value(), "remove " + from);
    return {};
}

}  // namespace

Status move_path(const std::string& from, const std::string& to) {
    struct stat info{};
    if (::lstat(from.c_str(), &info) != 0) return Error::from_errno(errno, from);
    if (::lstat(to.c_str(), &info) == 0) return Error(ErrorCode::conflict, to + " exists");
    if (to.starts_with(from + "/")) {
        return Error(ErrorCode::conflict, to + " is inside " + from);
    }
    std::size_t slash = to.find_last_of('/');
    if (slash != std::string::npos && slash > 0) {
        if (Status made = make_directories(to.substr(0, slash)); !made) return made;
    }
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
    if (errno == EEXIST) return Error(ErrorCode::conflict, to + " exists");
    // Some file systems know no flags; the check above has to do there.
    if ((errno == EINVAL || errno == ENOSYS) && ::rename(from.c_str(), to.c_str()) == 0) return {};
    if (errno == EXDEV) return move_by_copy(from, to);
    return Error::from_errno(errno, "move " + from);
}

}  // namespace opensandbox::agent
