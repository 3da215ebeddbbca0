#include "imagebuild/context_archive.hpp"

#include "base/unique_fd.hpp"
#include "image/archive_writer.hpp"
#include "image/archived_file.hpp"
#include "image/input_stream.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>

namespace opensandbox::imagebuild {
struct ContextArchive::State {
    State(const Context& c, Selection s, std::string r)
        : context(c), selection(std::move(s)), rename(std::move(r)) {}

    /// Produces some bytes into the buffer, or ends.
    Status step() {
        if (!started) {
            started = true;
            return writer.start();
        }
        if (file.open()) return file.write_some(writer);
        if (at < selection.members.size()) return add(selection.members[at++]);
        ended = true;
        return writer.end();
    }

    Status add(const Member& member) {
        const auto found = context.entries().find(member.source);
        if (found == context.entries().end()) {
            return Error(ErrorCode::internal, member.source + ": is not in the context");
        }
        const ContextEntry& from = found->second;
        const bool directory = from.kind == EntryKind::directory;
        std::string name = rename.empty() ? member.name : rename;
        if (directory) name += '/';
        image::EntryPointer entry(archive_entry_new());
        archive_entry_copy_pathname(entry.get(), name.c_str());
        archive_entry_set_filetype(entry.get(), directory                      ? AE_IFDIR
                                                : from.kind == EntryKind::link ? AE_IFLNK
                                                                               : AE_IFREG);
        archive_entry_set_perm(entry.get(), from.mode);
        archive_entry_set_uid(entry.get(), 0);
        archive_entry_set_gid(entry.get(), 0);
        archive_entry_set_mtime(entry.get(), from.modified.tv_sec, from.modified.tv_nsec);
        archive_entry_set_size(entry.get(), 0);
        if (from.kind == EntryKind::link) {
            archive_entry_copy_symlink(entry.get(), from.target.c_str());
        } else if (!directory) {
            if (Status opened = open(member.source, entry.get()); !opened) return opened;
        }
        return writer.add(entry.get(), member.source);
    }

    Status open(const std::string& name, archive_entry* entry) {
        const std::string path = (context.directory() / name).string();
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
        struct stat status{};
        if (!fd || ::fstat(fd.get(), &status) != 0) {
            const int number = errno;
            return Error::from_errno(number, "open " + path);
        }
        if (!S_ISREG(status.st_mode)) {
            return Error(ErrorCode::conflict, path + ": changed while it was read");
        }
        archive_entry_set_size(entry, status.st_size);
        file = image::ArchivedFile(std::move(fd), status, path, image::ArchivedFile::Holes::kept);
        file.describe(entry);
        return {};
    }

    const Context& context;
    Selection selection;
    std::string rename;
    std::size_t at = 0;
    bool started = false;
    bool ended = false;
    image::ArchivedFile file;  ///< being copied
    image::ArchiveWriter writer;
    std::optional<Error> failure;
};

ContextArchive::ContextArchive(const Context& context, Selection selection, std::string rename)
    : state_(std::make_unique<State>(context, std::move(selection), std::move(rename))) {}
ContextArchive::~ContextArchive() = default;

Result<std::size_t> ContextArchive::read(std::span<char> into) {
    State& state = *state_;
    while (!state.writer.has_bytes()) {
        if (state.failure) return *state.failure;
        if (state.ended) return std::size_t{0};
        if (Status ok = state.step(); !ok) state.failure = ok.error();
    }
    return state.writer.take(into);
}

Result<bool> is_archive(const std::filesystem::path& path) {
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        const int number = errno;
        return Error::from_errno(number, "open " + path.string());
    }
    image::FileInput bytes(file.get());
    auto plain = image::decompressed(bytes);
    if (!plain) return plain.error().within(path.string());
    std::array<char, 512> head{};
    std::size_t length = 0;
    while (length < head.size()) {
        auto count = (*plain)->read(std::span(head).subspan(length));
        if (!count || *count == 0) return false;
        length += *count;
    }
    // Both POSIX and old GNU archives say so at this place.
    return std::string_view(head.data() + 257, 5) == "ustar";
}

}  // namespace opensandbox::imagebuild
