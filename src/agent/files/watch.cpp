#include "agent/files/watch.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::uint32_t kMask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::size_t kBatch = std::size_t{64} * 1024;
constexpr std::size_t kBuffer = std::size_t{8} * 1024;
constexpr std::size_t kMaxKnown = 65'536;
constexpr std::size_t kMaxHalfMoves = 1'024;
/// Files carry the time of the kernel's last tick.
constexpr std::int64_t kTick = 20;

/// What the kernel makes up has no files that anyone writes, and no end.
bool made_up_by_kernel(const std::string& path) {
    struct statfs info{};
    if (::statfs(path.c_str(), &info) != 0) return false;
    constexpr std::array<unsigned long, 8> kTypes{
        PROC_SUPER_MAGIC,   SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
        DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,      SECURITYFS_MAGIC};
    return std::ranges::find(kTypes, static_cast<unsigned long>(info.f_type)) != kTypes.end();
}

Error too_many(const std::string& path) {
    return {ErrorCode::resource_exhausted, "too many directories to watch: " + path +
                                               " would be number " +
                                               std::to_string(FileWatch::kMaxDirectories + 1)};
}

Error watch_error(int number, const std::string& path) {
    if (number == ENOSPC) {
        return {ErrorCode::resource_exhausted, "watch " + path +
                                                   ": the kernel has no watches left "
                                                   "(fs.inotify.max_user_watches)"};
    }
    return Error::from_errno(number, "watch " + path);
}

std::int64_t millis(const statx_timestamp& time) {
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
    out.append(",\"").append(name).append("\":");
    append_json_string(out, text);
}

void append_ending(std::string& out) {
    out += ",\"timestamp\":";
    append_integer(out, to_millis(now()));
    out += "}\n\n";
}

}  // namespace

Result<std::unique_ptr<FileWatch>> FileWatch::open(const std::string& path, bool recursive) {
    std::unique_ptr<FileWatch> watch(new FileWatch(path, recursive));
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return Error::from_errno(errno, path);
    if (!S_ISDIR(info.st_mode)) {
        // By way of its directory: it stays watched when another file takes its place.
        std::size_t slash = path.find_last_of('/');
        watch->only_ = path.substr(slash + 1);
        watch->path_ = slash == 0 ? "/" : path.substr(0, slash);
        watch->recursive_ = false;
    }
    if (Status begun = watch->begin(); !begun) return begun.error();
    return watch;
}

Status FileWatch::begin() {
    inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify_) {
        if (errno != EMFILE) return Error::from_errno(errno, "inotify");
        return Error(ErrorCode::resource_exhausted,
                     "the kernel has no more watchers for this user "
                     "(fs.inotify.max_user_instances) or no descriptor is free");
    }
    int root = ::inotify_add_watch(inotify_.get(), path_.c_str(), kMask);
    if (root < 0) return watch_error(errno, path_);
    tree_.emplace(path_, root);
    quiet_since_ = to_millis(now());
    if (recursive_) scans_.emplace_back(root, Look::quiet);
    while (!scans_.empty()) {
        if (Status scanned = scan_some(); !scanned) return scanned;
    }
    return {};
}

Status FileWatch::take_in(int parent, std::string_view name, Look look) {
    std::string path = tree_->path(parent, name);
    struct stat info{};
    struct stat above{};
    bool found = ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (!found) return {};
    bool mounted = ::stat(tree_->path(parent).c_str(), &above) == 0 && above.st_dev != info.st_dev;
    if (mounted && made_up_by_kernel(path)) return {};
    int watch = ::inotify_add_watch(inotify_.get(), path.c_str(), kMask | IN_DONT_FOLLOW);
    if (watch < 0) {
        // Vanished, or not for this user to read: then there is nothing to be seen.
        return errno == ENOSPC || errno == ENOMEM ? Status(watch_error(errno, path)) : Status();
    }
    bool known = tree_->contains(watch);
    if (!known && tree_->size() >= kMaxDirectories) {
        ::inotify_rm_watch(inotify_.get(), watch);
        return too_many(path);
    }
    // The same directory in two places (a bind mount) is watched where it was seen first.
    if (!known) tree_->add(watch, parent, name);
    if (look == Look::again && !known) look = Look::fresh;
    // A second look at what is known would go round in circles of such mounts.
    if (known && look == Look::again && !tree_->visit(watch)) return {};
    scans_.emplace_back(watch, look);
    return {};
}

void FileWatch::take_in_or_say(int parent, std::string_view name, Look look) {
    Status taken = take_in(parent, name, look);
    if (taken || said_full_) return;
    said_full_ = true;
    say_error(tree_->path(parent, name), taken.error().message());
}

/// Looks at a few entries of the first directory in line.
Status FileWatch::scan_some() {
    Scan scan = scans_.front();
    auto done = [&]() -> Status {
        scanning_.reset();
        scans_.pop_front();
        return {};
    };
    if (!tree_->contains(scan.watch)) return done();
    if (!scanning_) scanning_.reset(::opendir(tree_->path(scan.watch).c_str()));
    if (!scanning_) return done();
    while (out_.size() < kBatch) {
        const dirent* entry = ::readdir(scanning_.get());
        if (!entry) return done();
        std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        bool directory = entry->d_type == DT_DIR;
        if (entry->d_type == DT_UNKNOWN) {
            struct stat info{};
            directory =
                ::lstat(tree_->path(scan.watch, name).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
        }
        if (scan.look != Look::quiet) {
            scan_entry(scan, name, directory);
        } else if (directory) {
            if (Status taken = take_in(scan.watch, name, Look::quiet); !taken) return taken;
        }
    }
    return {};
}

void FileWatch::scan_entry(const Scan& scan, std::string_view name, bool directory) {
    bool fresh = scan.look == Look::fresh;
    if (scan.look == Look::again) {
        bool born = false;
        bool changed = changed_since(tree_->path(scan.watch, name), born);
        if (directory && recursive_) {
            auto former = tree_->child(scan.watch, name);
            take_in_or_say(scan.watch, name, Look::again);
            if (former != tree_->child(scan.watch, name)) emit("create", scan.watch, name, true);
            return;
        }
        fresh = born;
        if (changed && !born && !directory) emit("modify", scan.watch, name, false);
    }
    if (!fresh) return;
    emit("create", scan.watch, name, directory);
    if (known_.size() >= kMaxKnown) known_.clear();
    known_.emplace(scan.watch, std::string(name));
    if (directory && recursive_) take_in_or_say(scan.watch, name, Look::fresh);
}

/// Whether a file was made (`born`) or written since all events were read.
bool FileWatch::changed_since(const std::string& path, bool& born) const {
    struct statx info{};
    if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW,
                STATX_MTIME | STATX_CTIME | STATX_BTIME, &info) != 0) {
        return false;
    }
    std::int64_t since = quiet_since_ - kTick;
    born = (info.stx_mask & STATX_BTIME) != 0 && millis(info.stx_btime) >= since;
    return born || millis(info.stx_mtime) >= since;
}

FileWatch::Batch FileWatch::read(bool settle) {
    out_.clear();
    bool empty = false;
    while (out_.size() < kBatch && !ended_ && !empty) {
        if (!scans_.empty()) {
            // Without room a directory is said and left out; a look itself does not fail.
            if (Status looked = scan_some(); !looked) say_error(path_, looked.error().message());
            continue;
        }
        if (std::exchange(second_look_, false)) {
            for (int gone : tree_->forget_unvisited())
                ::inotify_rm_watch(inotify_.get(), gone);
        }
        if (fill()) continue;
        empty = true;
        known_.clear();
        last_modified_.clear();
        quiet_since_ = to_millis(now());
        if (settle) settle_moves();
    }
    Batch batch;
    batch.events = std::move(out_);
    out_ = {};
    batch.more = !empty && !ended_;
    batch.unsettled = !half_moves_.empty();
    batch.ended = ended_;
    return batch;
}

/// Reads and processes a few events; false when there is none.
bool FileWatch::fill() {
    buffer_.resize(kBuffer);
    ssize_t got = ::read(inotify_.get(), buffer_.data(), buffer_.size());
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    auto size = static_cast<std::size_t>(got);
    for (std::size_t at = 0; at + sizeof(inotify_event) <= size && !ended_;) {
        inotify_event event{};
        std::memcpy(&event, buffer_.data() + at, sizeof event);
        at += sizeof event;
        const char* name = buffer_.data() + at;
        process(event, std::string_view(name, ::strnlen(name, event.len)));
        at += event.len;
    }
    return true;
}

void FileWatch::process(const inotify_event& event, std::string_view name) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) return overflowed();
    if (!tree_->contains(event.wd)) return;
    bool directory = (event.mask & IN_ISDIR) != 0;
    if (event.wd == tree_->root() && name.empty()) {
        if ((event.mask & IN_UNMOUNT) != 0) return end("unmounted");
        if ((event.mask & (IN_DELETE_SELF | IN_IGNORED)) != 0) return end("removed");
        if ((event.mask & IN_MOVE_SELF) != 0) return end("moved");
    }
    if ((event.mask & IN_IGNORED) != 0) {
        tree_->remove(event.wd);
    } else if ((event.mask & IN_CREATE) != 0) {
        created(event.wd, name, directory);
    } else if ((event.mask & IN_MOVED_TO) != 0) {
        moved_to(event, name, directory);
    } else if ((event.mask & IN_MOVED_FROM) != 0) {
        known_.erase({event.wd, std::string(name)});
        half_moves_.emplace_back(event.cookie, event.wd, std::string(name), directory);
        if (half_moves_.size() > kMaxHalfMoves) settle_moves();
    } else if ((event.mask & IN_DELETE) != 0) {
        known_.erase({event.wd, std::string(name)});
        emit("delete", event.wd, name, directory);
    } else if ((event.mask & IN_MODIFY) != 0 && !name.empty()) {
        emit("modify", event.wd, name, false);
    }
}

void FileWatch::created(int watch, std::string_view name, bool directory) {
    // A look into a new directory may have been faster than the event.
    if (known_.erase({watch, std::string(name)}) > 0) return;
    emit("create", watch, name, directory);
    if (directory && recursive_) take_in_or_say(watch, name, Look::fresh);
}

void FileWatch::moved_to(const inotify_event& event, std::string_view name, bool directory) {
    auto half = std::ranges::find(half_moves_, event.cookie, &HalfMove::cookie);
    if (half == half_moves_.end()) {
        return created(event.wd, name, directory);
    }
    known_.erase({event.wd, std::string(name)});
    HalfMove from = std::move(*half);
    half_moves_.erase(half);
    std::string former = tree_->path(from.watch, from.name);
    auto below = tree_->child(from.watch, from.name);
    if (below) tree_->move(*below, event.wd, name);
    emit("move", event.wd, name, directory, &former);
    // One that was not taken in where it was, for want of rights or room.
    if (directory && recursive_ && !below) take_in_or_say(event.wd, name, Look::fresh);
}

/// What went away did not come to any other place that is watched.
void FileWatch::settle_moves() {
    for (const HalfMove& half : std::exchange(half_moves_, {})) {
        if (!tree_->contains(half.watch)) continue;
        emit("delete", half.watch, half.name, half.directory);
        if (auto below = tree_->child(half.watch, half.name)) forget(*below);
    }
}

void FileWatch::forget(int watch) {
    for (int gone : tree_->remove(watch))
        ::inotify_rm_watch(inotify_.get(), gone);
}

void FileWatch::overflowed() {
    out_ += "{\"type\":\"overflow\"";
    append_member(out_, "path", path_);
    append_ending(out_);
    last_modified_.clear();
    scanning_.reset();
    scans_.clear();
    scans_.emplace_back(tree_->root(), Look::again);
    tree_->begin_round();
    second_look_ = true;
}

void FileWatch::end(std::string_view reason) {
    settle_moves();
    out_ += end_event(path_, reason);
    ended_ = true;
}

std::string FileWatch::end_event(std::string_view path, std::string_view reason) {
    std::string out = "{\"type\":\"end\"";
    append_member(out, "path", path);
    append_member(out, "reason", reason);
    append_ending(out);
    return out;
}

void FileWatch::say_error(const std::string& path, std::string_view message) {
    out_ += "{\"type\":\"error\"";
    append_member(out_, "path", path);
    append_member(out_, "message", message);
    append_ending(out_);
}

void FileWatch::emit(std::string_view type, int watch, std::string_view name, bool directory,
                     const std::string* from) {
    std::string path = tree_->path(watch, name);
    if (!only_.empty()) {
        bool concerned = name == only_ || (from && *from == tree_->path(tree_->root(), only_));
        if (!concerned) return;
    }
    // A write in many pieces is one event as long as nothing else happens.
    bool modified = type == "modify";
    if (modified && path == last_modified_) return;
    last_modified_ = modified ? path : std::string();
    out_.append("{\"type\":\"").append(type).append("\"");
    append_member(out_, "path", path);
    if (from) append_member(out_, "from", *from);
    out_ += directory ? ",\"directory\":true" : ",\"directory\":false";
    append_ending(out_);
}

bool FileWatch::lost() const {
    struct stat info{};
    return ::stat(path_.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace opensandbox::agent
