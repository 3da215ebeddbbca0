#include "runtime/native/ground/layer/layer_copy.hpp"

#include "base/unique_fd.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

/// A directory whose entries are being copied.
struct Level {
    std::unique_ptr<DIR, CloseDirectory> from;
    UniqueFd to;
    struct stat info{};
    std::size_t path_length = 0;  ///< of the directory's own path
};

class LayerCopy {
  public:
    LayerCopy(UniqueFd from, UniqueFd to, LayerFiles files)
        : from_(std::move(from)),
          to_(std::move(to)),
          files_kept_(files),
          link_(files == LayerFiles::linked) {}

    Status run() {
        struct stat info{};
        if (::fstat(from_.get(), &info) < 0) return last_error("stat");
        device_ = info.st_dev;
        UniqueFd top(::openat(to_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!top) return last_error("open");
        if (auto s =
                enter(UniqueFd(::fcntl(from_.get(), F_DUPFD_CLOEXEC, 3)), std::move(top), info);
            !s) {
            return s;
        }
        while (!levels_.empty()) {
            errno = 0;
            const dirent* entry = ::readdir(levels_.back().from.get());
            if (!entry && errno != 0) return last_error(path_ + ": list it");
            if (!entry) {
                if (auto s = leave(); !s) return s;
                continue;
            }
            const std::string_view name = entry->d_name;
            if (name == "." || name == "..") continue;
            path_.resize(levels_.back().path_length);
            if (!path_.empty()) path_ += '/';
            path_ += name;
            if (auto s = copy_entry(entry->d_name); !s) return s;
        }
        return {};
    }

  private:
    Status enter(UniqueFd from, UniqueFd to, const struct stat& info) {
        if (levels_.size() >= kMaxLayerDepth) {
            return Error(ErrorCode::too_large,
                         "directories are nested deeper than " + std::to_string(kMaxLayerDepth));
        }
        Level level;
        level.from.reset(::fdopendir(from.get()));
        if (!level.from) return last_error(path_ + ": open it");
        (void)from.release();
        level.to = std::move(to);
        level.info = info;
        level.path_length = path_.size();
        levels_.push_back(std::move(level));
        return {};
    }

    /// Last, since copying its entries changes its times.
    Status leave() {
        const Level& level = levels_.back();
        path_.resize(level.path_length);
        auto status = copy_attributes(::dirfd(level.from.get()), level.to.get(), level.info, path_);
        levels_.pop_back();
        return status;
    }

    Status copy_entry(const char* name) {
        const int from = ::dirfd(levels_.back().from.get());
        const int to = levels_.back().to.get();
        struct stat info{};
        if (::fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) < 0) return last_error(path_);
        if (info.st_dev != device_) {
            return Error(ErrorCode::io, path_ + ": lies on another file system");
        }
        if (S_ISDIR(info.st_mode)) return copy_directory(from, to, name, info);
        if (files_kept_ == LayerFiles::linked && S_ISSOCK(info.st_mode)) return {};
        if (link_ && S_ISREG(info.st_mode)) {
            if (::linkat(from, name, to, name, 0) == 0) return {};
            // Another file system, too many names, or not allowed here.
            if (errno != EMLINK) link_ = false;
        }
        if (info.st_nlink > 1) {
            const auto known = links_.find(info.st_ino);
            if (known != links_.end()) {
                return check(::linkat(to_.get(), known->second.c_str(), to, name, 0),
                             path_ + ": link to " + known->second);
            }
            links_.emplace(info.st_ino, path_);
        }
        if (S_ISREG(info.st_mode)) return copy_file(from, to, name, info);
        return copy_node(from, to, name, info);
    }

    Status copy_directory(int from, int to, const char* name, const struct stat& info) {
        constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        UniqueFd in(::openat(from, name, kFlags));
        if (!in) return last_error(path_ + ": open it");
        if (::mkdirat(to, name, 0700) < 0) return last_error(path_ + ": make it");
        UniqueFd out(::openat(to, name, kFlags));
        if (!out) return last_error(path_ + ": open its copy");
        return enter(std::move(in), std::move(out), info);
    }

    Status copy_file(int from, int to, const char* name, const struct stat& info) {
        UniqueFd in(::openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME));
        if (!in) return last_error(path_ + ": open it");
        UniqueFd out(
            ::openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!out) return last_error(path_ + ": make it");
        if (auto s = files_.content(in.get(), out.get(), info); !s) return s.error().within(path_);
        return copy_attributes(in.get(), out.get(), info, path_);
    }

    /// Symbolic links, pipes, sockets, and the devices 0/0 by which overlayfs hides a lower file.
    Status copy_node(int from, int to, const char* name, const struct stat& info) {
        if (S_ISLNK(info.st_mode)) {
            std::array<char, PATH_MAX + 1> target{};
            if (::readlinkat(from, name, target.data(), target.size() - 1) < 0) {
                return last_error(path_ + ": read it");
            }
            if (::symlinkat(target.data(), to, name) < 0) return last_error(path_ + ": make it");
        } else if (::mknodat(to, name, info.st_mode & (S_IFMT | 07777), info.st_rdev) < 0) {
            return last_error(path_ + ": make it");
        }
        if (::fchownat(to, name, info.st_uid, info.st_gid, AT_SYMLINK_NOFOLLOW) < 0) {
            return last_error(path_ + ": keep its owner");
        }
        if (!S_ISLNK(info.st_mode) && ::fchmodat(to, name, info.st_mode & 07777, 0) < 0) {
            return last_error(path_ + ": keep its mode");
        }
        const std::array<timespec, 2> times{info.st_atim, info.st_mtim};
        return check(::utimensat(to, name, times.data(), AT_SYMLINK_NOFOLLOW),
                     path_ + ": keep its times");
    }

    UniqueFd from_;
    UniqueFd to_;
    dev_t device_ = 0;
    LayerFiles files_kept_;
    bool link_;  ///< until it does not work
    FileCopy files_;
    std::vector<Level> levels_;
    std::map<ino_t, std::string> links_;  ///< of files with several names, the first in the copy
    std::string path_;                    ///< what is being copied, from the layer's root
};

}  // namespace

Status copy_layer(const std::filesystem::path& from, const std::filesystem::path& to,
                  LayerFiles files) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd in(::open(from.c_str(), kFlags));
    if (!in) return last_error("open " + from.string());
    if (::mkdir(to.c_str(), 0700) < 0) return last_error("mkdir " + to.string());
    UniqueFd out(::open(to.c_str(), kFlags));
    if (!out) return last_error("open " + to.string());
    return LayerCopy(std::move(in), std::move(out), files).run();
}

}  // namespace opensandbox::runtime::native
