#include "image/entry_metadata.hpp"

#include "image/budget.hpp"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <unistd.h>

namespace opensandbox::image {
namespace {

constexpr std::int64_t kIdLimit = 65536;

/// Version 3 carries the id of the root user it was made under; layers are 0-based, so version 2,
/// which means "whoever is root here", says the same for every sandbox.
std::string portable_capability(std::string_view value) {
    std::string portable(value);
    if (value.size() != sizeof(vfs_ns_cap_data)) return portable;
    vfs_ns_cap_data data;
    std::memcpy(&data, value.data(), sizeof data);
    if ((data.magic_etc & VFS_CAP_REVISION_MASK) != VFS_CAP_REVISION_3) return portable;
    data.magic_etc = (data.magic_etc & ~VFS_CAP_REVISION_MASK) | VFS_CAP_REVISION_2;
    std::memcpy(portable.data(), &data, sizeof data);
    portable.resize(sizeof(vfs_cap_data));
    return portable;
}

Status apply_attributes(int fd, archive_entry* entry, const EntryPath& path) {
    if (archive_entry_xattr_reset(entry) == 0) return {};
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
        if (!name) continue;
        std::string_view key(name);
        // trusted.* and user.overlay.* steer overlayfs; only we write those.
        bool user = key.starts_with("user.") && !key.starts_with("user.overlay.");
        bool capability = key == "security.capability";
        if (!user && !capability) continue;
        std::string bytes(static_cast<const char*>(value), size);
        if (capability) bytes = portable_capability(bytes);
        if (::fsetxattr(fd, name, bytes.data(), bytes.size(), 0) != 0) {
            int number = errno;
            return Error::from_errno(
                number, "entry " + in_quotes(path.full()) + ": set attribute " + in_quotes(key));
        }
    }
    return {};
}

}  // namespace

Result<EntryMetadata> metadata_of(archive_entry* entry, const EntryPath& path) {
    std::int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
    if (uid < 0 || uid >= kIdLimit || gid < 0 || gid >= kIdLimit) {
        return broken_rule(path.full(), "owner " + std::to_string(uid) + ":" + std::to_string(gid) +
                                            ": ids must be below 65536");
    }
    EntryMetadata metadata;
    metadata.uid = static_cast<uid_t>(uid);
    metadata.gid = static_cast<gid_t>(gid);
    metadata.mode = archive_entry_perm(entry) & 07777;
    metadata.mtime.tv_sec = archive_entry_mtime(entry);
    metadata.mtime.tv_nsec = archive_entry_mtime_nsec(entry);
    if (metadata.mtime.tv_nsec < 0 || metadata.mtime.tv_nsec >= 1'000'000'000) {
        metadata.mtime.tv_nsec = 0;
    }
    return metadata;
}

Status apply_to_fd(int fd, archive_entry* entry, const EntryMetadata& metadata,
                   const EntryPath& path) {
    // The owner first: changing it takes away setuid bits and capabilities.
    if (::fchown(fd, metadata.uid, metadata.gid) != 0) {
        int number = errno;
        return Error::from_errno(number, "entry " + in_quotes(path.full()) + ": set the owner");
    }
    if (::fchmod(fd, metadata.mode) != 0) {
        int number = errno;
        return Error::from_errno(number, "entry " + in_quotes(path.full()) + ": set the mode");
    }
    return apply_attributes(fd, entry, path);
}

}  // namespace opensandbox::image
