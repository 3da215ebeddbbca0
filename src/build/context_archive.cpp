#include "build/context_archive.hpp"

#include "base/unique_fd.hpp"
#include "image/input_stream.hpp"

#include <archive.h>
#include <sys/stat.h>

#include <archive_entry.h>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <unistd.h>
#include <vector>

namespace opensandbox::build {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;

struct FreeArchive {
    void operator()(archive* handle) const { archive_write_free(handle); }
};
struct FreeEntry {
    void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

}  // namespace

struct ContextArchive::State {
    State(const Context& c, Selection s, std::string r)
        : context(c), selection(std::move(s)), rename(std::move(r)), writer(archive_write_new()) {}

    static la_ssize_t on_write(archive*, void* self, const void* bytes, std::size_t size) {
        static_cast<State*>(self)->buffer.append(static_cast<const char*>(bytes), size);
        return static_cast<la_ssize_t>(size);
    }

    Status start() {
        archive* to = writer.get();
        // Names are bytes, not text in some locale.
        const bool ok = to && archive_write_set_format_pax(to) == ARCHIVE_OK &&
                        archive_write_set_options(to, "hdrcharset=BINARY") == ARCHIVE_OK &&
                        archive_write_set_bytes_per_block(to, 0) == ARCHIVE_OK &&
                        archive_write_open(to, this, nullptr, on_write, nullptr) == ARCHIVE_OK;
        started = true;
        return ok ? Status() : Error(ErrorCode::internal, "the archive writer did not start");
    }

    Error failed(const std::string& path) {
        const char* detail = archive_error_string(writer.get());
        return {ErrorCode::io, path + ": " + (detail ? detail : "cannot be archived")};
    }

    /// Produces some bytes into the buffer, or ends.
    Status step() {
        if (!started) return start();
        if (file) return add_data();
        if (at < selection.members.size()) return add(selection.members[at++]);
        ended = true;
        return archive_write_close(writer.get()) == ARCHIVE_OK ? Status() : failed("end");
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
        std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
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
            if (Status opened = open(member.source); !opened) return opened;
            archive_entry_set_size(entry.get(), static_cast<la_int64_t>(left));
        }
        const int result = archive_write_header(writer.get(), entry.get());
        return result < ARCHIVE_WARN ? Status(failed(member.source)) : Status();
    }

    Status open(const std::string& path) {
        file_path = (context.directory() / path).string();
        file = UniqueFd(::open(file_path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
        struct stat status{};
        if (!file || ::fstat(file.get(), &status) != 0) {
            const int number = errno;
            return Error::from_errno(number, "open " + file_path);
        }
        if (!S_ISREG(status.st_mode)) return changed();
        left = static_cast<std::uint64_t>(status.st_size);
        return {};
    }

    [[nodiscard]] Error changed() const {
        return {ErrorCode::conflict, file_path + ": changed while it was read"};
    }

    Status add_data() {
        if (left == 0) {
            file.reset();
            return {};
        }
        piece.resize(std::min<std::uint64_t>(kPiece, left));
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) return {};
        if (count < 0) {
            const int number = errno;
            return Error::from_errno(number, "read " + file_path);
        }
        if (count == 0) return changed();
        const auto size = static_cast<std::size_t>(count);
        if (archive_write_data(writer.get(), piece.data(), size) != count) return failed(file_path);
        left -= size;
        return {};
    }

    const Context& context;
    Selection selection;
    std::string rename;
    std::size_t at = 0;
    bool started = false;
    bool ended = false;
    UniqueFd file;  ///< being copied
    std::string file_path;
    std::uint64_t left = 0;
    std::vector<char> piece;
    std::string buffer;
    std::size_t taken = 0;
    std::optional<Error> failure;
    std::unique_ptr<archive, FreeArchive> writer;  ///< last: when freed it still writes
};

ContextArchive::ContextArchive(const Context& context, Selection selection, std::string rename)
    : state_(std::make_unique<State>(context, std::move(selection), std::move(rename))) {}
ContextArchive::~ContextArchive() = default;

Result<std::size_t> ContextArchive::read(std::span<char> into) {
    State& state = *state_;
    while (state.taken == state.buffer.size()) {
        state.buffer.clear();
        state.taken = 0;
        if (state.failure) return *state.failure;
        if (state.ended) return std::size_t{0};
        if (Status ok = state.step(); !ok) state.failure = ok.error();
    }
    const std::size_t count = state.buffer.copy(into.data(), into.size(), state.taken);
    state.taken += count;
    return count;
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

}  // namespace opensandbox::build
