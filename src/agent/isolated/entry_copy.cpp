#include "agent/files/replacement_file.hpp"
#include "agent/isolated/upper_changes.hpp"
#include "agent/isolated/upper_commit.hpp"
#include "base/identifier.hpp"
#include "base/unique_fd.hpp"

#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

Status copy_content(int from, int to, const std::string& name) {
    while (true) {
        ssize_t copied = ::copy_file_range(from, nullptr, to, nullptr, std::size_t{1} << 30, 0);
        if (copied == 0) return {};
        if (copied < 0 && errno != EINTR) break;
    }
    // Where the kernel cannot copy by itself.
    std::string piece(std::size_t{256} * 1024, '\0');
    while (true) {
        ssize_t got = ::read(from, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, "read " + name);
        if (got == 0) return {};
        std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
        if (Status put = write_fully(to, bytes, name); !put) return put;
    }
}

Status copy_extended_attributes(int from, int to) {
    ssize_t size = ::flistxattr(from, nullptr, 0);
    if (size <= 0) return {};
    std::string names(static_cast<std::size_t>(size), '\0');
    size = ::flistxattr(from, names.data(), names.size());
    if (size < 0) return Error::from_errno(errno, "list attributes");
    names.resize(static_cast<std::size_t>(size));
    for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
        const char* name = names.c_str() + at;
        std::string_view text(name);
        if (text.starts_with("trusted.overlay.") || text.starts_with("user.overlay.")) continue;
        ssize_t length = ::fgetxattr(from, name, nullptr, 0);
        if (length < 0) continue;
        std::string value(static_cast<std::size_t>(length), '\0');
        length = ::fgetxattr(from, name, value.data(), value.size());
        if (length < 0) continue;
        value.resize(static_cast<std::size_t>(length));
        if (::fsetxattr(to, name, value.data(), value.size(), 0) != 0 && errno != EOPNOTSUPP) {
            return Error::from_errno(errno, "set attribute " + std::string(text));
        }
    }
    return {};
}

/// Makes the new entry under a temporary name.
Status make_copy(int from, int to, const std::string& name, const std::string& temporary,
                 const struct stat& info) {
    if (S_ISLNK(info.st_mode)) {
        Result<std::string> target = read_link(from, name, info);
        if (!target) return target.error();
        if (::symlinkat(target->c_str(), to, temporary.c_str()) != 0) {
            return Error::from_errno(errno, "make the link " + name);
        }
    } else if (S_ISREG(info.st_mode)) {
        UniqueFd in(::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        if (!in) return Error::from_errno(errno, "read " + name);
        UniqueFd out(::openat(to, temporary.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!out) return Error::from_errno(errno, "make " + name);
        if (Status copied = copy_content(in.get(), out.get(), name); !copied) return copied;
        if (Status kept = copy_attributes(in.get(), out.get(), info); !kept) return kept;
        if (::fsync(out.get()) != 0) return Error::from_errno(errno, "write " + name);
        return {};
    } else if (::mknodat(to, temporary.c_str(), info.st_mode & (S_IFMT | 07777), info.st_rdev) !=
               0) {
        return Error::from_errno(errno, "make " + name);
    }
    if (::fchownat(to, temporary.c_str(), info.st_uid, info.st_gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return Error::from_errno(errno, "keep the owner of " + name);
    }
    if (!S_ISLNK(info.st_mode)) ::fchmodat(to, temporary.c_str(), info.st_mode & 07777, 0);
    std::array<timespec, 2> times{info.st_atim, info.st_mtim};
    ::utimensat(to, temporary.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
    return {};
}

Status give_name(int directory, const std::string& temporary, const std::string& name,
                 const Status& made) {
    if (made && ::renameat(directory, temporary.c_str(), directory, name.c_str()) == 0) return {};
    Status result = made ? Status(Error::from_errno(errno, "rename to " + name)) : made;
    ::unlinkat(directory, temporary.c_str(), 0);
    return result;
}

std::string temporary_name() {
    return ".commit-" + new_hex_id();
}

}  // namespace

Status copy_entry(int from, int to, const std::string& name, const struct stat& info) {
    std::string temporary = temporary_name();
    return give_name(to, temporary, name, make_copy(from, to, name, temporary, info));
}

Status link_entry(int root, const std::string& path, int to, const std::string& name) {
    std::string temporary = temporary_name();
    Status made;
    if (::linkat(root, path.c_str(), to, temporary.c_str(), 0) != 0) {
        made = Error::from_errno(errno, "link " + name);
    }
    return give_name(to, temporary, name, made);
}

Status copy_attributes(int from, int to, const struct stat& info) {
    if (::fchown(to, info.st_uid, info.st_gid) != 0) {
        return Error::from_errno(errno, "keep the owner");
    }
    // After the owner: a change of owner clears special bits, and attributes such as capabilities.
    if (::fchmod(to, info.st_mode & 07777) != 0) return Error::from_errno(errno, "keep the mode");
    if (Status copied = copy_extended_attributes(from, to); !copied) return copied;
    std::array<timespec, 2> times{info.st_atim, info.st_mtim};
    ::futimens(to, times.data());
    return {};
}

Status remove_entry(int directory, const std::string& name) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return Error::from_errno(errno, "remove " + name);
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return {};
    if (errno != ENOTEMPTY && errno != EEXIST) return Error::from_errno(errno, "remove " + name);
    UniqueFd inner(open_below(directory, name));
    if (!inner) return Error::from_errno(errno, "open " + name);
    Result<std::vector<std::string>> names = names_in(inner.get());
    if (!names) return names.error();
    for (const std::string& entry : *names) {
        if (Status done = remove_entry(inner.get(), entry); !done) return done;
    }
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return {};
    return Error::from_errno(errno, "remove " + name);
}

}  // namespace opensandbox::agent
