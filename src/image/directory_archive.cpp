#include "image/directory_archive.hpp"

#include "base/unique_fd.hpp"
#include "image/archive_writer.hpp"
#include "image/archived_file.hpp"
#include "image/budget.hpp"
#include "image/layer_tree.hpp"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <algorithm>
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

/// Taken from an archive at a time.
constexpr std::size_t kPiece = std::size_t{256} << 10;

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
    /// Produces some bytes into the buffer, or ends.
    Status step();
    Status add(Level& level, const std::string& name);
    Status add_node(Level& level, const std::string& name, const struct stat& status);
    Status add_file(archive_entry* entry, UniqueFd fd, const struct stat& status,
                    const std::string& path);
    /// The thing itself that is open, as the first entry.
    Status add_open(UniqueFd fd, const std::string& name);
    void add_attributes(archive_entry* entry, int fd);

    /// An empty file of this name, which says something of its neighbours.
    Status add_mark(const std::string& path, const struct stat& status);
    Status add_top();

    Form form = Form::plain;
    bool top_pending = false;  ///< the directory itself is still to come
    std::vector<Level> levels;
    std::map<std::pair<dev_t, ino_t>, std::string> linked;  ///< first name of files with several
    ArchivedFile file;                                      ///< being copied
    ArchiveWriter writer;
    std::stop_token stop;
    bool ended = false;
    std::optional<Error> failure;
};

void DirectoryArchive::State::add_attributes(archive_entry* entry, int fd) {
    std::string names(std::size_t{64} << 10, '\0');
    ssize_t length = ::flistxattr(fd, names.data(), names.size());
    if (length <= 0) return;
    std::string value(std::size_t{64} << 10, '\0');
    for (std::size_t at = 0; at < static_cast<std::size_t>(length);) {
        const char* entry_name = names.c_str() + at;
        const std::string_view name = entry_name;
        at += name.size() + 1;
        if (name.starts_with("user.overlay.")) continue;
        if (!name.starts_with("user.") && name != "security.capability") continue;
        ssize_t size = ::fgetxattr(fd, entry_name, value.data(), value.size());
        if (size >= 0) {
            archive_entry_xattr_add_entry(entry, entry_name, value.data(),
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
    EntryPointer entry(archive_entry_new());
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
            return writer.add(entry.get(), path);
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
    if (!directory && !regular) return writer.add(entry.get(), path);

    UniqueFd fd(
        open_inside(level.fd.get(), name.c_str(), directory ? O_RDONLY | O_DIRECTORY : O_RDONLY));
    if (!fd && errno != EXDEV) return call_failed("open", path);
    if (!fd) return directory ? writer.add(entry.get(), path) : Status();  // mounted there
    add_attributes(entry.get(), fd.get());
    if (regular) return add_file(entry.get(), std::move(fd), status, path);
    if (auto ok = writer.add(entry.get(), path); !ok) return ok;
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
    EntryPointer entry(archive_entry_new());
    archive_entry_copy_pathname(entry.get(), path.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0);
    archive_entry_set_size(entry.get(), 0);
    archive_entry_set_mtime(entry.get(), status.st_mtim.tv_sec, 0);
    return writer.add(entry.get(), path);
}

Status DirectoryArchive::State::add_top() {
    top_pending = false;
    int fd = levels.back().fd.get();
    struct stat status{};
    if (::fstat(fd, &status) != 0) return call_failed("read", ".");
    EntryPointer entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &status);
    archive_entry_unset_atime(entry.get());
    archive_entry_unset_ctime(entry.get());
    archive_entry_unset_birthtime(entry.get());
    archive_entry_copy_pathname(entry.get(), "./");
    add_attributes(entry.get(), fd);
    if (auto ok = writer.add(entry.get(), "."); !ok) return ok;
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
    EntryPointer entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &status);
    archive_entry_unset_atime(entry.get());
    archive_entry_unset_ctime(entry.get());
    archive_entry_unset_birthtime(entry.get());
    archive_entry_copy_pathname(entry.get(), directory ? "./" : name.c_str());
    add_attributes(entry.get(), fd.get());
    if (!directory) return add_file(entry.get(), std::move(fd), status, name);
    if (auto ok = writer.add(entry.get(), name); !ok) return ok;
    auto names = names_in(fd.get(), name);
    if (!names) return names.error();
    Level top;
    top.fd = std::move(fd);
    top.path = "./";
    top.names = std::move(*names);
    levels.push_back(std::move(top));
    return {};
}

Status DirectoryArchive::State::add_file(archive_entry* entry, UniqueFd fd,
                                         const struct stat& status, const std::string& path) {
    // Of layers, which others unpack as well: not every tar knows holes, and engines that make a
    // layer's stream again from its files cannot repeat them. Zeros are packed well.
    const auto holes =
        form == Form::layer ? ArchivedFile::Holes::written : ArchivedFile::Holes::kept;
    file = ArchivedFile(std::move(fd), status, path, holes);
    file.describe(entry);
    return writer.add(entry, path);
}

Status DirectoryArchive::State::step() {
    if (file.open()) return file.write_some(writer);
    if (top_pending) return add_top();
    if (levels.empty()) {
        ended = true;
        return writer.end();
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

Result<DirectoryArchive> DirectoryArchive::open(const std::filesystem::path& directory, Form form,
                                                std::stop_token stop) {
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
    if (auto ok = state->writer.start(); !ok) return ok.error();
    state->levels.push_back(std::move(top));
    state->form = form;
    state->stop = std::move(stop);
    state->top_pending = form == Form::layer;
    return DirectoryArchive(std::move(state));
}

Result<DirectoryArchive> DirectoryArchive::open_entry(const std::filesystem::path& path,
                                                      const std::string& name,
                                                      std::stop_token stop) {
    // Not to wait for the other end of a pipe.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return Error::from_errno(errno, "open " + path.string());
    auto state = std::make_unique<State>();
    if (auto ok = state->writer.start(); !ok) return ok.error();
    state->stop = std::move(stop);
    const std::string shown = name.empty() ? path.filename().string() : name;
    if (auto ok = state->add_open(std::move(fd), shown); !ok) return ok.error();
    return DirectoryArchive(std::move(state));
}

Result<std::size_t> DirectoryArchive::read(std::span<char> into) {
    State& state = *state_;
    while (!state.writer.has_bytes()) {
        if (state.failure) return *state.failure;
        if (state.ended) return std::size_t{0};
        if (state.stop.stop_requested()) {
            state.failure = Error(ErrorCode::cancelled, "the archive was broken off");
        } else if (auto ok = state.step(); !ok) {
            state.failure = ok.error();
        }
    }
    return state.writer.take(into);
}

Status write_archive(const std::filesystem::path& directory, const ByteSink& sink,
                     DirectoryArchive::Form form, std::stop_token stop) {
    auto archive = DirectoryArchive::open(directory, form, std::move(stop));
    if (!archive) return archive.error();
    std::vector<char> buffer(kPiece);
    for (;;) {
        auto count = archive->read(buffer);
        if (!count) return count.error();
        if (*count == 0) return {};
        if (auto ok = sink(std::span(buffer).first(*count)); !ok) return ok;
    }
}

}  // namespace opensandbox::image
