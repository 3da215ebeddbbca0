#include "agent/files/replacement_file.hpp"

#include "base/identifier.hpp"
#include "base/sparse_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr unsigned kNewFileMode = 0777;  // less the umask, as the contract has it

/// The file that a path with links leads to; the path itself when it does not exist yet.
std::string follow_links(const std::string& path) {
    auto release = [](char* text) { std::free(text); };
    std::unique_ptr<char, decltype(release)> real(::realpath(path.c_str(), nullptr), release);
    if (real) return real.get();
    // A link that leads nowhere yet is filled where it points to, as opening it would.
    std::string at = path;
    for (int hops = 0; hops < 40; ++hops) {
        std::error_code error;
        auto next = std::filesystem::read_symlink(at, error);
        if (error) break;
        at = next.is_absolute() ? next.string()
                                : (std::filesystem::path(at).parent_path() / next).string();
    }
    return at;
}

}  // namespace

Status make_directories(const std::string& path) {
    if (::mkdir(path.c_str(), 0777) == 0) return {};
    int error = errno;
    if (error == EEXIST) {
        struct stat info{};
        if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
        return Error(ErrorCode::conflict, path + " exists and is not a directory");
    }
    std::size_t slash = path.find_last_of('/');
    if (error != ENOENT || slash == std::string::npos || slash == 0) {
        return Error::from_errno(error, "make directory " + path);
    }
    if (Status parent = make_directories(path.substr(0, slash)); !parent) return parent;
    if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
    return Error::from_errno(errno, "make directory " + path);
}

Status write_fully(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        ssize_t put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return Error::from_errno(errno, "write " + path);
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

Result<ReplacementFile> ReplacementFile::open(const std::string& path, bool make_parents) {
    ReplacementFile file;
    file.target_ = follow_links(path);
    std::size_t slash = file.target_.find_last_of('/');
    if (make_parents && slash != std::string::npos && slash > 0) {
        Status made = make_directories(file.target_.substr(0, slash));
        if (!made) return made.error();
    }
    struct stat info{};
    Status opened;
    if (::stat(file.target_.c_str(), &info) != 0) {
        if (errno != ENOENT) return Error::from_errno(errno, file.target_);
        opened = file.open_sibling();
    } else if (S_ISDIR(info.st_mode)) {
        return Error(ErrorCode::conflict, file.target_ + " is a directory");
    } else if (!S_ISREG(info.st_mode)) {
        file.direct_ = true;
        file.fd_.reset(::open(file.target_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        if (!file.fd_) opened = Error::from_errno(errno, "write " + file.target_);
    } else if (::faccessat(AT_FDCWD, file.target_.c_str(), W_OK, AT_EACCESS) != 0) {
        // Who may not write the file may not replace it either.
        return Error::from_errno(errno, "write " + file.target_);
    } else {
        file.former_owner_ = PermissionIds{info.st_uid, info.st_gid};
        file.mode_ = info.st_mode & 07777;
        file.overwrite_ = info.st_nlink > 1;
        opened = file.open_sibling();
        if (!opened && opened.error().code() == ErrorCode::permission_denied) {
            file.overwrite_ = true;
            opened = file.open_unnamed();
        }
    }
    if (!opened) return opened.error();
    return file;
}

Status ReplacementFile::open_sibling() {
    std::size_t slash = target_.find_last_of('/');
    std::string sibling = target_.substr(0, slash + 1) + ".opensandbox-" + new_hex_id();
    unsigned mode = former_owner_ ? 0600 : kNewFileMode;
    fd_.reset(::open(sibling.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd_) {
        int error = errno == EROFS ? EACCES : errno;
        return Error::from_errno(error, "write " + target_);
    }
    sibling_ = std::move(sibling);
    return {};
}

Status ReplacementFile::open_unnamed() {
    fd_.reset(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd_) fd_.reset(::memfd_create("replacement", MFD_CLOEXEC));
    if (!fd_) return Error::from_errno(errno, "write " + target_);
    return {};
}

ReplacementFile::~ReplacementFile() {
    if (fd_ && !sibling_.empty()) ::unlink(sibling_.c_str());
}

Status ReplacementFile::write(std::string_view bytes) {
    if (direct_) return write_fully(fd_.get(), bytes, target_);
    auto end = write_sparsely(fd_.get(), bytes, size_);
    if (!end) return end.error().within(target_);
    written_ = std::max(written_, *end);
    size_ += bytes.size();
    return {};
}

Status ReplacementFile::commit(const Permission& permission) {
    if (direct_) return apply_permission(fd_.get(), target_, permission);
    if (written_ < size_ && ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
        return Error::from_errno(errno, "write " + target_);
    }
    if (overwrite_) {
        if (Status copied = copy_over_target(); !copied) return copied;
        return apply_permission(target_, permission);
    }
    if (former_owner_) {
        // Only root may give a file away; another user's replacement is his own.
        if (::fchown(fd_.get(), former_owner_->uid, former_owner_->gid) != 0 && errno != EPERM) {
            return Error::from_errno(errno, "keep owner of " + target_);
        }
        if (::fchmod(fd_.get(), mode_) != 0) {
            return Error::from_errno(errno, "keep mode of " + target_);
        }
    }
    if (Status applied = apply_permission(fd_.get(), target_, permission); !applied) return applied;
    if (::rename(sibling_.c_str(), target_.c_str()) == 0) {
        sibling_.clear();
        return {};
    }
    if (errno != EBUSY) return Error::from_errno(errno, "replace " + target_);
    if (Status copied = copy_over_target(); !copied) return copied;
    return apply_permission(target_, permission);
}

/// Keeps the target's inode, and with it mode, owner and other names.
Status ReplacementFile::copy_over_target() {
    UniqueFd out(::open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!out) return Error::from_errno(errno, "write " + target_);
    std::string piece(std::size_t{64} * 1024, '\0');
    for (std::uint64_t at = 0; at < size_;) {
        ssize_t got = ::pread(fd_.get(), piece.data(), piece.size(), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, "write " + target_);
        if (got == 0) break;
        std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
        auto end = write_sparsely(out.get(), bytes, at);
        if (!end) return end.error().within(target_);
        at += bytes.size();
    }
    if (::ftruncate(out.get(), static_cast<off_t>(size_)) != 0) {
        return Error::from_errno(errno, "write " + target_);
    }
    if (!sibling_.empty()) ::unlink(sibling_.c_str());
    sibling_.clear();
    return {};
}

}  // namespace opensandbox::agent
