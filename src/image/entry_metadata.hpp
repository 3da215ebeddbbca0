#pragma once

#include "image/entry_path.hpp"

#include <archive.h>
#include <sys/types.h>

#include <archive_entry.h>
#include <ctime>

namespace opensandbox::image {

/// Owner, mode and time of an archive entry, checked.
struct EntryMetadata {
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0;  ///< permission bits with setuid, setgid and sticky
    timespec mtime{};
};

/// `invalid_argument` when an id is not below 65536: no sandbox has more of them.
Result<EntryMetadata> metadata_of(archive_entry* entry, const EntryPath& path);

/// Owner, mode, extended attributes, in the order in which the kernel keeps them.
Status apply_to_fd(int fd, archive_entry* entry, const EntryMetadata& metadata,
                   const EntryPath& path);

}  // namespace opensandbox::image
