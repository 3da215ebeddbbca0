#include "image/directory_archive.hpp"

#include "base/unique_fd.hpp"
#include "image/budget.hpp"
#include "image/layer_tree.hpp"

#include <archive.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <algorithm>
#include <archive_entry.h>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::image {
namespace {

constexpr std::size_t piece = std::size_t{256} << 10;

struct FreeArchive {
    void operator()(archive* handle) const { archive_write_free(handle); }
};
struct FreeEntry {
    void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

/// A directory on the way down and what of it is still to come, last name first.
struct Level {
    UniqueFd fd;
    std::string path;  ///< with a trailing slash, empty for the top
    std::vector<std::string> names;
};

Error call_failed(std::string_view call, std::string_view path) {
    int number = errno;
    return Error::from_errno(number, std::string(call) + " " + in_quotes(path));
}

/// Opens below `directory` without following a link; EXDEV when something is mounted there.
int open_inside(int directory, const char* name, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    return static_cast<int>(::syscall(SYS_openat2, directory, name, &how, sizeof how));
}

/// Overlayfs' mark, as a privileged and as an unprivileged mount sets it.
bool is_opaque(int directory) {
    for (const char* name : {"trusted.overlay.opaque", "user.overlay.opaque"}) {
        char value = 0;
        if (::fgetxattr(directory, name, &value, 1) == 1 && value == 'y') return true;
    }
    return false;
}

Result<std::vector<std::string>> names_in(int directory, std::string_view path) {
    int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
    if (!stream) {
        Error error = call_failed("list", path);
        if (copy >= 0) ::close(copy);
        return error;
    }
    std::unique_ptr<DIR, int (*)(DIR*)> owner(stream, ::closedir);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
        std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return call_failed("list", path);
    std::ranges::sort(names, std::greater<>());
    return names;
}

}  // namespace

struct DirectoryArchive::State {
    State() : writer(archive_write_new()) {}

    static la_ssize_t on_write(archive*, void* self, const void* bytes, std::size_t size) {
        static_cast<State*>(self)->buffer.append(static_cast<const char*>(bytes), size);
        return static_cast<la_ssize_t>(size);
    }

    bool start() {
        archive* to = writer.get();
        // Names are bytes, not text in some locale; one form of attributes is enough.
        return to && archive_write_set_format_pax(to) == ARCHIVE_OK &&
               archive_write_set_options(to, "hdrcharset=BINARY,xattrheader=SCHILY") ==
                   ARCHIVE_OK &&
               archive_write_set_bytes_per_block(to, 0) == ARCHIVE_OK &&
               archive_write_open(to, this, nullptr, on_write, nullptr) == ARCHIVE_OK;
    }

    Error writer_failed(std::string_view path) {
        const char* detail = archive_error_string(writer.get());
        return {ErrorCode::io, "archive " + in_quotes(path) + ": " + (detail ? detail : "failed")};
    }

    /// Produces some bytes into the buffer, or ends.
    Status step();
    Status add(Level& level, const std::string& name);
    Status add_node(Level& level, const std::string& name, const struct stat& status);
    Status add_data();
    /// The thing itself that is open, as the first entry.
    Status add_open(UniqueFd fd, const std::string& name);
    Status write_header(archive_entry* entry, const std::string& path);
    void add_attributes(archive_entry* entry, int fd);

    /// An empty file of this name, which says something of its neighbours.
    Status add_mark(const std::string& path, const struct stat& status);
    Status add_top();

    Form form = Form::plain;
    bool top_pending = false;  ///< the directory itself is still to come
    std::vector<Level> levels;
    std::map<std::pair<dev_t, ino_t>, std::string> linked;  ///< first name of files with several
    UniqueFd file;                                          ///< being copied
    std::string file_path;
    std::uint64_t file_left = 0;
    std::string buffer;
    std::size_t taken = 0;
    bool ended = false;
    std::optional<Error> failure;
    std::unique_ptr<archive, FreeArchive> writer;  ///< last: when freed it still writes
};

Status DirectoryArchive::State::write_header(archive_entry* entry, const std::string& path) {
    int result = archive_write_header(writer.get(), entry);
    return result < ARCHIVE_WARN ? Status(writer_failed(path)) : Status();
}

void DirectoryArchive::State::add_attributes(archive_entry* entry, int fd) {
    std::string names(std::size_t{64} << 10, '\0');
    ssize_t length = ::flistxattr(fd, names.data(), names.size());
    if (length <= 0) return;
    std::string value(std::size_t{64} << 10, '\0');
    for (std::size_t at = 0; at < static_cast<std::size_t>(length);) {
        std::string_view name = names.c_str() + at;
        at += name.size() + 1;
        if (name.starts_with("user.overlay.")) continue;
        if (!name.starts_with("user.") && name != "security.capability") continue;
        ssize_t size = ::fgetxattr(fd, name.data(), value.data(), value.size());
        if (size >= 0) {
            archive_entry_xattr_add_entry(entry, name.data(), value.data(),
                                          static_cast<std::size_t>(size));
        }
    }
}

Status DirectoryArchive::State::add(Level& level, const std::string& name) {
    struct stat status{};
    if (::fstatat(level.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? Status() : Status(call_failed("read", level.path + name));
    }
    if (form == Form::layer && is_whiteout_device(status)) {
        return add_mark(level.path + ".wh." + name, status);
    }
    switch (status.st_mode & S_IFMT) {
        case S_IFREG:
        case S_IFDIR:
        case S_IFLNK:
        case S_IFIFO: return add_node(level, name, status);
        default: return {};
    }
}

Status DirectoryArchive::State::add_node(Level& level, const std::string& name,
                                         const struct stat& status) {
    std::string path = level.path + name;
    std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &status);
    archive_entry_unset_atime(entry.get());
    archive_entry_unset_ctime(entry.get());
    archive_entry_unset_birthtime(entry.get());
    bool directory = S_ISDIR(status.st_mode), regular = S_ISREG(status.st_mode);
    archive_entry_copy_pathname(entry.get(), (directory ? path + "/" : path).c_str());
    if (!directory && status.st_nlink > 1) {
        auto [first, fresh] = linked.try_emplace({status.st_dev, status.st_ino}, path);
        if (!fresh) {
            archive_entry_set_size(entry.get(), 0);
            archive_entry_copy_hardlink(entry.get(), first->second.c_str());
            return write_header(entry.get(), path);
        }
    }
    if (!regular) archive_entry_set_size(entry.get(), 0);
    if (S_ISLNK(status.st_mode)) {
        char target[4096];
        ssize_t length = ::readlinkat(level.fd.get(), name.c_str(), target, sizeof target - 1);
        if (length < 0) return call_failed("read", path);
        target[length] = '\0';
        archive_entry_copy_symlink(entry.get(), target);
    }
    if (!directory && !regular) return write_header(entry.get(), path);

    UniqueFd fd(
        open_inside(level.fd.get(), name.c_str(), directory ? O_RDONLY | O_DIRECTORY : O_RDONLY));
    if (!fd && errno != EXDEV) return call_failed("open", path);
    if (!fd) return directory ? write_header(entry.get(), path) : Status();  // mounted there
    add_attributes(entry.get(), fd.get());
    if (auto ok = write_header(entry.get(), path); !ok) return ok;
    if (regular) {
        file = std::move(fd);
        file_path = std::move(path);
        file_left = static_cast<std::uint64_t>(status.st_size);
        return {};
    }
    if (form == Form::layer && is_opaque(fd.get())) {
        if (auto ok = add_mark(path + "/.wh..wh..opq", status); !ok) return ok;
    }
    auto names = names_in(fd.get(), path);
    if (!names) return names.error();
    Level below;
    below.fd = std::move(fd);
    below.path = path + "/";
    below.names = std::move(*names);
    levels.push_back(std::move(below));
    return {};
}

Status DirectoryArchive::State::add_mark(const std::string& path, const struct stat& status) {
    std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_copy_pathname(entry.get(), path.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0);
    archive_entry_set_size(entry.get(), 0);
    archive_entry_set_mtime(entry.get(), status.st_mtim.tv_sec, 0);
    return write_header(entry.get(), path);
}

Status DirectoryArchive::State::add_top() {
    top_pending = false;
    int fd = levels.back().fd.get();
    struct stat status{};
    if (::fstat(fd, &status) != 0) return call_failed("read", ".");
    std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &status);
    archive_entry_unset_atime(entry.get());
    archive_entry_unset_ctime(entry.get());
    archive_entry_unset_birthtime(entry.get());
    archive_entry_copy_pathname(entry.get(), "./");
    add_attributes(entry.get(), fd);
    if (auto ok = write_header(entry.get(), "."); !ok) return ok;
    return is_opaque(fd) ? add_mark(".wh..wh..opq", status) : Status();
}

Status DirectoryArchive::State::add_open(UniqueFd fd, const std::string& name) {
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return call_failed("read", name);
    const bool directory = S_ISDIR(status.st_mode);
    if (!directory && !S_ISREG(status.st_mode)) {
        return Error(ErrorCode::invalid_argument,
                     in_quotes(name) + " is neither a file nor a directory");
    }
    std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &status);
    archive_entry_unset_atime(entry.get());
    archive_entry_unset_ctime(entry.get());
    archive_entry_unset_birthtime(entry.get());
    archive_entry_copy_pathname(entry.get(), directory ? "./" : name.c_str());
    add_attributes(entry.get(), fd.get());
    if (auto ok = write_header(entry.get(), name); !ok) return ok;
    if (!directory) {
        file = std::move(fd);
        file_path = name;
        file_left = static_cast<std::uint64_t>(status.st_size);
        return {};
    }
    auto names = names_in(fd.get(), name);
    if (!names) return names.error();
    Level top;
    top.fd = std::move(fd);
    top.path = "./";
    top.names = std::move(*names);
    levels.push_back(std::move(top));
    return {};
}

Status DirectoryArchive::State::add_data() {
    if (file_left == 0) {
        file.reset();
        return {};
    }
    std::vector<char> bytes(std::min<std::uint64_t>(piece, file_left));
    ssize_t count = ::read(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) return {};
    if (count < 0) return call_failed("read", file_path);
    if (count == 0) {
        return Error(ErrorCode::conflict,
                     in_quotes(file_path) + " became shorter while it was read");
    }
    if (archive_write_data(writer.get(), bytes.data(), static_cast<std::size_t>(count)) != count) {
        return writer_failed(file_path);
    }
    file_left -= static_cast<std::uint64_t>(count);
    return {};
}

Status DirectoryArchive::State::step() {
    if (file) return add_data();
    if (top_pending) return add_top();
    if (levels.empty()) {
        ended = true;
        if (archive_write_close(writer.get()) != ARCHIVE_OK) return writer_failed("end");
        return {};
    }
    if (levels.back().names.empty()) {
        levels.pop_back();
        return {};
    }
    std::string name = std::move(levels.back().names.back());
    levels.back().names.pop_back();
    return add(levels.back(), name);
}

DirectoryArchive::DirectoryArchive(std::unique_ptr<State> state) : state_(std::move(state)) {}
DirectoryArchive::DirectoryArchive(DirectoryArchive&&) noexcept = default;
DirectoryArchive& DirectoryArchive::operator=(DirectoryArchive&&) noexcept = default;
DirectoryArchive::~DirectoryArchive() = default;

Result<DirectoryArchive> DirectoryArchive::open(const std::filesystem::path& directory, Form form) {
    Level top;
    top.fd = UniqueFd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top.fd && errno == ENOTDIR) {
        return Error(ErrorCode::invalid_argument, directory.string() + " is not a directory");
    }
    if (!top.fd) return Error::from_errno(errno, "open " + directory.string());
    auto names = names_in(top.fd.get(), directory.string());
    if (!names) return names.error();
    top.names = std::move(*names);
    auto state = std::make_unique<State>();
    if (!state->start()) return Error(ErrorCode::internal, "the archive writer did not start");
    state->levels.push_back(std::move(top));
    state->form = form;
    state->top_pending = form == Form::layer;
    return DirectoryArchive(std::move(state));
}

Result<DirectoryArchive> DirectoryArchive::open_entry(const std::filesystem::path& path,
                                                      const std::string& name) {
    // Not to wait for the other end of a pipe.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return Error::from_errno(errno, "open " + path.string());
    auto state = std::make_unique<State>();
    if (!state->start()) return Error(ErrorCode::internal, "the archive writer did not start");
    const std::string shown = name.empty() ? path.filename().string() : name;
    if (auto ok = state->add_open(std::move(fd), shown); !ok) return ok.error();
    return DirectoryArchive(std::move(state));
}

Result<std::size_t> DirectoryArchive::read(std::span<char> into) {
    State& state = *state_;
    while (state.taken == state.buffer.size()) {
        state.buffer.clear();
        state.taken = 0;
        if (state.failure) return *state.failure;
        if (state.ended) return std::size_t{0};
        if (auto ok = state.step(); !ok) state.failure = ok.error();
    }
    std::size_t count = state.buffer.copy(into.data(), into.size(), state.taken);
    state.taken += count;
    return count;
}

Status write_archive(const std::filesystem::path& directory, const ByteSink& sink,
                     DirectoryArchive::Form form) {
    auto archive = DirectoryArchive::open(directory, form);
    if (!archive) return archive.error();
    std::vector<char> buffer(piece);
    for (;;) {
        auto count = archive->read(buffer);
        if (!count) return count.error();
        if (*count == 0) return {};
        if (auto ok = sink(std::span(buffer).first(*count)); !ok) return ok;
    }
}

}  // namespace opensandbox::image
