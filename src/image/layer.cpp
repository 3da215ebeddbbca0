#include "image/layer.hpp"

#include "base/log.hpp"
#include "base/sparse_file.hpp"
#include "image/entry_metadata.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::image {
namespace {

/// Directory times are kept until the end; this is what their names may take in memory.
constexpr std::uint64_t kMostDirectoryNames = 256ULL << 20;

Error call_failed(const EntryPath& path, std::string_view call) {
    int number = errno;
    return Error::from_errno(number, "entry " + in_quotes(path.full()) + ": " + std::string(call));
}

std::uint64_t size_of(archive_entry* entry) {
    la_int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
    return size > 0 ? static_cast<std::uint64_t>(size) : 0;
}

/// Writes the entry's data at its offsets, so that holes stay holes; long runs of zeros become
/// some.
Status write_data(int fd, const EntryPath& path, ArchiveReader& reader, std::uint64_t size) {
    std::uint64_t end = 0;
    for (;;) {
        auto block = reader.next_block();
        if (!block) return block.error().within("entry " + in_quotes(path.full()));
        if (!*block) break;
        const auto [bytes, offset] = **block;
        if (offset > size || bytes.size() > size - offset) {
            return broken_rule(path.full(), "the data must not be longer than the stated size");
        }
        auto written = write_sparsely(fd, bytes, offset);
        if (!written) return written.error().within("entry " + in_quotes(path.full()));
        end = std::max(end, *written);
    }
    if (end < size && ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
        return call_failed(path, "set the size");
    }
    return {};
}

}  // namespace

Status LayerWriter::add(ArchiveReader& reader, archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    auto path = parse_entry_path(raw ? raw : "");
    if (!path) return path.error();
    if (path->name.empty()) return add_root(entry);
    auto parent = tree_.parent(*path);
    if (!parent) return parent.error();
    record_.entries += 1;
    switch (whiteout_of(path->name)) {
        case Whiteout::metadata: return {};
        case Whiteout::file:
            return tree_.make_whiteout(*parent, *path, whiteout_target(path->name));
        case Whiteout::opaque: {
            if (path->parent.empty()) record_.opaque = true;
            EntryPath directory;
            directory.parent = path->parent;
            return tree_.make_opaque(*parent, directory);
        }
        case Whiteout::none: break;
    }
    if (const char* target = archive_entry_hardlink(entry)) {
        if (auto ok = budget_.add_entry(path->full(), 0); !ok) return ok;
        return tree_.link(*parent, *path, target);
    }
    std::uint64_t size = archive_entry_filetype(entry) == AE_IFREG ? size_of(entry) : 0;
    if (auto ok = budget_.add_entry(path->full(), size); !ok) return ok;
    switch (archive_entry_filetype(entry)) {
        case AE_IFDIR: return add_directory(*parent, *path, entry);
        case AE_IFREG: return add_file(*parent, *path, reader, entry);
        case AE_IFLNK: return add_symlink(*parent, *path, entry);
        case AE_IFIFO: return add_fifo(*parent, *path, entry);
        default: skipped_ += 1; return {};
    }
}

Status LayerWriter::add_root(archive_entry* entry) {
    EntryPath path;
    path.name = ".";
    if (archive_entry_filetype(entry) != AE_IFDIR) {
        return broken_rule(".", "the root must be a directory");
    }
    if (auto ok = budget_.add_entry(".", 0); !ok) return ok;
    auto metadata = metadata_of(entry, path);
    if (!metadata) return metadata.error();
    if (auto ok = apply_to_fd(root_, entry, *metadata, path); !ok) return ok;
    return remember_times(EntryPath(), entry);
}

Status LayerWriter::add_directory(int parent, const EntryPath& path, archive_entry* entry) {
    auto metadata = metadata_of(entry, path);
    if (!metadata) return metadata.error();
    if (auto ok = tree_.make_directory(parent, path); !ok) return ok;
    UniqueFd directory(
        ::openat(parent, path.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) return call_failed(path, "open the directory");
    if (auto ok = apply_to_fd(directory.get(), entry, *metadata, path); !ok) return ok;
    return remember_times(path, entry);
}

Status LayerWriter::add_file(int parent, const EntryPath& path, ArchiveReader& reader,
                             archive_entry* entry) {
    auto metadata = metadata_of(entry, path);
    if (!metadata) return metadata.error();
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd file(::openat(parent, path.name.c_str(), kFlags, 0600));
    if (!file && errno == EEXIST) {
        if (auto ok = tree_.clear(parent, path); !ok) return ok;
        file = UniqueFd(::openat(parent, path.name.c_str(), kFlags, 0600));
    }
    if (!file) return call_failed(path, "make the file");
    std::uint64_t size = size_of(entry);
    if (auto ok = write_data(file.get(), path, reader, size); !ok) return ok;
    if (auto ok = apply_to_fd(file.get(), entry, *metadata, path); !ok) return ok;
    timespec times[2] = {metadata->mtime, metadata->mtime};
    if (::futimens(file.get(), times) != 0) return call_failed(path, "set the time");
    record_.size += size;
    return {};
}

Status LayerWriter::add_symlink(int parent, const EntryPath& path, archive_entry* entry) {
    auto metadata = metadata_of(entry, path);
    if (!metadata) return metadata.error();
    const char* target = archive_entry_symlink(entry);
    if (!target || !*target || std::string_view(target).size() > 4095) {
        return broken_rule(path.full(), "a symbolic link must have a target of 1 to 4095 bytes");
    }
    if (auto ok = tree_.clear(parent, path); !ok) return ok;
    const char* name = path.name.c_str();
    if (::symlinkat(target, parent, name) != 0) return call_failed(path, "make the link");
    if (::fchownat(parent, name, metadata->uid, metadata->gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return call_failed(path, "set the owner");
    }
    timespec times[2] = {metadata->mtime, metadata->mtime};
    if (::utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) != 0) {
        return call_failed(path, "set the time");
    }
    return {};
}

Status LayerWriter::add_fifo(int parent, const EntryPath& path, archive_entry* entry) {
    auto metadata = metadata_of(entry, path);
    if (!metadata) return metadata.error();
    if (auto ok = tree_.clear(parent, path); !ok) return ok;
    const char* name = path.name.c_str();
    timespec times[2] = {metadata->mtime, metadata->mtime};
    if (::mknodat(parent, name, S_IFIFO | 0600, 0) != 0 ||
        ::fchownat(parent, name, metadata->uid, metadata->gid, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::fchmodat(parent, name, metadata->mode, 0) != 0 ||
        ::utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) != 0) {
        return call_failed(path, "make the fifo");
    }
    return {};
}

Status LayerWriter::remember_times(const EntryPath& path, archive_entry* entry) {
    auto metadata = metadata_of(entry, path);
    if (!metadata) return metadata.error();
    std::string full = path.full();
    directory_names_ += full.size() + sizeof(directory_times_[0]);
    if (directory_names_ > kMostDirectoryNames) {
        return Error(ErrorCode::too_large, "entry " + in_quotes(full) + ": too many directories");
    }
    directory_times_.emplace_back(std::move(full), metadata->mtime);
    return {};
}

Result<LayerRecord> LayerWriter::finish() {
    for (const auto& [path, mtime] : directory_times_) {
        auto directory = tree_.open_directory(path);
        if (!directory) continue;  // a later entry took its place
        timespec times[2] = {mtime, mtime};
        if (::futimens(directory->get(), times) != 0) {
            int number = errno;
            return Error::from_errno(number, "entry " + in_quotes(path) + ": set the time");
        }
    }
    if (skipped_ > 0) {
        log::debug("device nodes and sockets of a layer were passed over", {{"count", skipped_}});
    }
    return record_;
}

Result<LayerRecord> unpack_layer(InputStream& tar, int root, ImportBudget& budget) {
    ArchiveReader reader(tar, ArchiveReader::Kind::tar);
    LayerWriter writer(root, budget);
    for (;;) {
        auto entry = reader.next();
        if (!entry) return entry.error();
        if (!*entry) break;
        if (auto ok = writer.add(reader, *entry); !ok) return ok.error();
    }
    auto record = writer.finish();
    if (!record) return record;
    if (auto ok = drain(tar); !ok) return ok.error();
    return record;
}

}  // namespace opensandbox::image
