#include "agent/files/operations.hpp"
#include "base/sparse_file.hpp"
#include "base/unique_fd.hpp"
#include "image/archive_reader.hpp"
#include "image/entry_metadata.hpp"
#include "image/entry_path.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <unistd.h>
#include <vector>

namespace opensandbox::agent {
namespace {

using image::ArchiveReader;
using image::EntryMetadata;
using image::EntryPath;

constexpr std::size_t kMostDirectories = 500'000;

Error failed(std::string_view what, const std::string& path) {
    const int number = errno;
    return Error::from_errno(number, std::string(what) + " " + path);
}

/// The ids and mode that take the place of the archive's.
struct Override {
    std::optional<uid_t> uid;
    std::optional<gid_t> gid;
    std::optional<unsigned> mode;
};

Result<Override> resolve(const Permission& permission) {
    Override out;
    out.mode = permission.mode;
    if (permission.owner.empty() && permission.group.empty()) return out;
    const Accounts accounts = Accounts::load();
    if (!permission.owner.empty()) {
        auto uid = accounts.user_id(permission.owner);
        if (!uid) return uid.error();
        out.uid = *uid;
        out.gid = accounts.primary_group(*uid).value_or(static_cast<gid_t>(*uid));
    }
    if (!permission.group.empty()) {
        auto gid = accounts.group_id(permission.group);
        if (!gid) return gid.error();
        out.gid = *gid;
    }
    return out;
}

class Unpacker {
  public:
    Unpacker(std::string directory, const Override& instead)
        : directory_(std::move(directory)), instead_(instead) {}

    /// The directory itself, with its parents.
    Status prepare() {
        struct stat info{};
        fresh_ = ::stat(directory_.c_str(), &info) != 0;
        return make_directories(directory_);
    }

    Status add(ArchiveReader& reader, archive_entry* entry) {
        const char* raw = archive_entry_pathname(entry);
        auto path = image::parse_entry_path(raw ? raw : "");
        if (!path) return path.error();
        auto metadata = image::metadata_of(entry, *path);
        if (!metadata) return metadata.error();
        apply_override(*metadata);
        if (path->name.empty()) return add_root(entry, *metadata, *path);
        const std::string full = join(path->full());
        if (Status made = make_parent(*path); !made) return made;
        if (const char* target = archive_entry_hardlink(entry)) return add_link(full, target);
        switch (archive_entry_filetype(entry)) {
            case AE_IFDIR: return add_directory(full, entry, *metadata, *path);
            case AE_IFREG: return add_file(full, reader, entry, *metadata, *path);
            case AE_IFLNK: return add_symlink(full, entry, *metadata);
            case AE_IFIFO: return add_fifo(full, *metadata);
            default: return {};
        }
    }

    /// Directories get their times last: what was put into them changed those.
    Status finish() {
        for (const auto& [path, modified] : times_) {
            const timespec times[2] = {modified, modified};
            if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0 && errno != ENOENT) {
                return failed("set the time of", path);
            }
        }
        return {};
    }

  private:
    void apply_override(EntryMetadata& metadata) const {
        if (instead_.uid) metadata.uid = *instead_.uid;
        if (instead_.gid) metadata.gid = *instead_.gid;
        if (instead_.mode) metadata.mode = *instead_.mode;
    }

    [[nodiscard]] std::string join(const std::string& below) const {
        return directory_ == "/" ? "/" + below : directory_ + "/" + below;
    }

    /// mkdir -p with 0755 and the owner asked for.
    Status make_directories(const std::string& path) {
        struct stat info{};
        if (::stat(path.c_str(), &info) == 0) {
            if (S_ISDIR(info.st_mode)) return {};
            return Error(ErrorCode::conflict, path + " is not a directory");
        }
        if (errno == ENOTDIR) return Error(ErrorCode::conflict, path + ": not in a directory");
        const auto slash = path.rfind('/');
        if (slash != std::string::npos && slash > 0) {
            if (Status made = make_directories(path.substr(0, slash)); !made) return made;
        }
        if (::mkdir(path.c_str(), 0755) != 0) return failed("make the directory", path);
        if (::chmod(path.c_str(), 0755) != 0) return failed("set the mode of", path);
        if (!instead_.uid && !instead_.gid) return {};
        const uid_t uid = instead_.uid.value_or(static_cast<uid_t>(-1));
        const gid_t gid = instead_.gid.value_or(static_cast<gid_t>(-1));
        return ::chown(path.c_str(), uid, gid) == 0 ? Status() : failed("set the owner of", path);
    }

    Status make_parent(const EntryPath& path) {
        if (path.parent.empty() || path.parent == last_parent_) return {};
        if (Status made = make_directories(join(path.parent)); !made) return made;
        last_parent_ = path.parent;
        return {};
    }

    Status remember(const std::string& path, const EntryMetadata& metadata) {
        if (times_.size() >= kMostDirectories) {
            return Error(ErrorCode::too_large, path + ": too many directories");
        }
        times_.emplace_back(path, metadata.mtime);
        return {};
    }

    Status dress_directory(const std::string& full, archive_entry* entry,
                           const EntryMetadata& metadata, const EntryPath& path) {
        const UniqueFd fd(::open(full.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd) return failed("open", full);
        if (Status ok = image::apply_to_fd(fd.get(), entry, metadata, path); !ok) return ok;
        return remember(full, metadata);
    }

    Status add_root(archive_entry* entry, const EntryMetadata& metadata, const EntryPath& path) {
        if (!fresh_ || archive_entry_filetype(entry) != AE_IFDIR) return {};
        return dress_directory(directory_, entry, metadata, path);
    }

    Status add_directory(const std::string& full, archive_entry* entry,
                         const EntryMetadata& metadata, const EntryPath& path) {
        if (::mkdir(full.c_str(), 0700) == 0) return dress_directory(full, entry, metadata, path);
        if (errno != EEXIST) return failed("make the directory", full);
        struct stat info{};
        if (::stat(full.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
        return Error(ErrorCode::conflict, full + ": is there and not a directory");
    }

    /// Frees the place of something that is no directory.
    static Status clear(const std::string& full) {
        if (::unlink(full.c_str()) == 0 || errno == ENOENT) return {};
        if (errno == EISDIR || errno == EPERM) {
            return Error(ErrorCode::conflict, full + ": is a directory");
        }
        return failed("replace", full);
    }

    static Status write_data(int fd, ArchiveReader& reader, const std::string& full,
                             std::uint64_t size) {
        std::uint64_t end = 0;
        for (;;) {
            auto block = reader.next_block();
            if (!block) return block.error().within(full);
            if (!*block) break;
            auto written = write_sparsely(fd, (*block)->bytes, (*block)->offset);
            if (!written) return written.error().within(full);
            end = std::max(end, *written);
        }
        if (end >= size || ::ftruncate(fd, static_cast<off_t>(size)) == 0) return {};
        return failed("set the size of", full);
    }

    Status add_file(const std::string& full, ArchiveReader& reader, archive_entry* entry,
                    const EntryMetadata& metadata, const EntryPath& path) {
        if (Status ok = clear(full); !ok) return ok;
        const UniqueFd fd(
            ::open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!fd) return failed("make", full);
        const la_int64_t size = std::max<la_int64_t>(archive_entry_size(entry), 0);
        const auto whole = static_cast<std::uint64_t>(size);
        if (Status ok = write_data(fd.get(), reader, full, whole); !ok) return ok;
        if (Status ok = image::apply_to_fd(fd.get(), entry, metadata, path); !ok) return ok;
        const timespec times[2] = {metadata.mtime, metadata.mtime};
        return ::futimens(fd.get(), times) == 0 ? Status() : failed("set the time of", full);
    }

    /// Owner and time of a thing that cannot be opened.
    static Status dress(const std::string& full, const EntryMetadata& metadata) {
        const timespec times[2] = {metadata.mtime, metadata.mtime};
        if (::lchown(full.c_str(), metadata.uid, metadata.gid) != 0) {
            return failed("set the owner of", full);
        }
        if (::utimensat(AT_FDCWD, full.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
            return failed("set the time of", full);
        }
        return {};
    }

    static Status add_symlink(const std::string& full, archive_entry* entry,
                              const EntryMetadata& metadata) {
        const char* target = archive_entry_symlink(entry);
        if (!target || !*target) {
            return Error(ErrorCode::invalid_argument, full + ": the link has no target");
        }
        if (Status ok = clear(full); !ok) return ok;
        if (::symlink(target, full.c_str()) != 0) return failed("make the link", full);
        return dress(full, metadata);
    }

    static Status add_fifo(const std::string& full, const EntryMetadata& metadata) {
        if (Status ok = clear(full); !ok) return ok;
        if (::mkfifo(full.c_str(), 0600) != 0) return failed("make", full);
        if (::chmod(full.c_str(), metadata.mode) != 0) return failed("set the mode of", full);
        return dress(full, metadata);
    }

    Status add_link(const std::string& full, const char* target) {
        auto path = image::parse_entry_path(target);
        if (!path) return path.error();
        if (Status ok = clear(full); !ok) return ok;
        const std::string from = join(path->full());
        return ::link(from.c_str(), full.c_str()) == 0 ? Status() : failed("link to " + from, full);
    }

    std::string directory_;
    Override instead_;
    bool fresh_ = false;
    std::string last_parent_;
    std::vector<std::pair<std::string, timespec>> times_;
};

}  // namespace

Status unpack_archive(image::InputStream& packed, const UnpackRequest& request) {
    auto instead = resolve(request.permission);
    if (!instead) return instead.error();
    auto plain = image::decompressed(packed);
    // A compression that we do not know is the client's mistake.
    if (!plain) return Error(ErrorCode::invalid_argument, plain.error().message());
    Unpacker unpacker(request.directory, *instead);
    if (Status ready = unpacker.prepare(); !ready) return ready;
    ArchiveReader reader(**plain, ArchiveReader::Kind::tar);
    for (;;) {
        auto entry = reader.next();
        if (!entry) return entry.error();
        if (!*entry) break;
        if (Status added = unpacker.add(reader, *entry); !added) return added;
    }
    if (Status done = unpacker.finish(); !done) return done;
    return image::drain(**plain);
}

}  // namespace opensandbox::agent
