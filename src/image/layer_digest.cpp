#include "image/layer_digest.hpp"

#include "base/digest.hpp"
#include "base/sparse_file.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <span>
#include <unistd.h>
#include <vector>

namespace opensandbox::image {
namespace {

constexpr std::size_t kDeepest = 2'000;
/// Blocks of zeroes do not count, so that holes and zeroes are the same.
constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBuffer = 64 * kBlock;
constexpr std::size_t kLargestAttribute = 64 * 1024;

struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

/// Every value with its length, so that no two sequences look alike.
class Feed {
  public:
    void number(std::uint64_t value) {
        std::array<char, 8> bytes{};
        for (char& byte : bytes) {
            byte = static_cast<char>(value & 0xff);
            value >>= 8;
        }
        hash_.update(bytes);
    }
    void text(std::string_view value) {
        number(value.size());
        hash_.update(std::span<const char>(value.data(), value.size()));
    }
    void bytes(std::span<const char> value) { hash_.update(value); }
    [[nodiscard]] std::string finish() { return hash_.finish(); }

  private:
    Sha256 hash_;
};

class LayerReader {
  public:
    explicit LayerReader(const std::stop_token& stop) : stop_(stop) {}

    Result<MadeLayer> run(UniqueFd root) {
        struct stat info{};
        if (::fstat(root.get(), &info) != 0) return failed("read its status");
        feed_.text("layer 1");
        feed_inode(info);
        if (auto ok = feed_attributes(root.get(), &layer_.record.opaque); !ok) return ok.error();
        if (auto ok = read_directory(root.get(), 0); !ok) return ok.error();
        layer_.hex = feed_.finish();
        return std::move(layer_);
    }

  private:
    [[nodiscard]] Error failed(std::string_view call) const {
        const int number = errno;
        return Error::from_errno(number, "layer: " + path_ + ": " + std::string(call));
    }

    void feed_inode(const struct stat& info) {
        feed_.number(info.st_mode & 07777);
        feed_.number(info.st_uid);
        feed_.number(info.st_gid);
        feed_.number(static_cast<std::uint64_t>(info.st_mtim.tv_sec));
        feed_.number(static_cast<std::uint64_t>(info.st_mtim.tv_nsec));
    }

    Result<std::vector<std::string>> names_in(int directory) {
        UniqueFd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!copy) return failed("open");
        std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(copy.get()));
        if (!stream) return failed("open");
        (void)copy.release();
        std::vector<std::string> names;
        for (;;) {
            errno = 0;
            const dirent* entry = ::readdir(stream.get());
            if (!entry && errno != 0) return failed("list");
            if (!entry) break;
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") names.emplace_back(name);
        }
        std::ranges::sort(names);
        return names;
    }

    Status read_directory(int directory, std::size_t depth) {
        if (depth > kDeepest) {
            return Error(ErrorCode::too_large,
                         "layer: directories are nested deeper than " + std::to_string(kDeepest));
        }
        auto names = names_in(directory);
        if (!names) return names.error();
        const std::size_t length = path_.size();
        for (const std::string& name : *names) {
            path_.resize(length);
            if (length > 0) path_ += '/';
            path_ += name;
            if (auto ok = read_entry(directory, name.c_str(), depth); !ok) return ok;
        }
        path_.resize(length);
        return {};
    }

    Status read_entry(int directory, const char* name, std::size_t depth) {
        struct stat info{};
        if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            return failed("read its status");
        }
        if (S_ISSOCK(info.st_mode)) return {};
        layer_.record.entries += 1;
        feed_.text(path_);
        if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {
            feed_.text("device");
            feed_.number(info.st_rdev);
            return {};
        }
        if (!S_ISDIR(info.st_mode) && info.st_nlink > 1) {
            // Names outside of the layer count as links as well.
            auto [known, first] = links_.emplace(info.st_ino, path_);
            if (!first) {
                feed_.text("link");
                feed_.text(known->second);
                return {};
            }
        }
        if (S_ISLNK(info.st_mode)) return read_symlink(directory, name, info);
        if (S_ISFIFO(info.st_mode)) {
            feed_.text("fifo");
            feed_inode(info);
            return {};
        }
        const int kind = S_ISDIR(info.st_mode) ? O_DIRECTORY : O_NOATIME;
        UniqueFd fd(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
        if (!fd) return failed("open");
        feed_.text(S_ISDIR(info.st_mode) ? "directory" : "file");
        feed_inode(info);
        bool opaque = false;
        if (auto ok = feed_attributes(fd.get(), &opaque); !ok) return ok;
        if (S_ISDIR(info.st_mode)) return read_directory(fd.get(), depth + 1);
        layer_.record.size += static_cast<std::uint64_t>(info.st_size);
        return read_content(fd.get(), info.st_size);
    }

    Status read_symlink(int directory, const char* name, const struct stat& info) {
        std::array<char, PATH_MAX + 1> target{};
        const ssize_t length = ::readlinkat(directory, name, target.data(), target.size() - 1);
        if (length < 0) return failed("read the link");
        feed_.text("symlink");
        feed_inode(info);
        feed_.text({target.data(), static_cast<std::size_t>(length)});
        return {};
    }

    Status feed_attributes(int fd, bool* opaque) {
        std::vector<char> list(kLargestAttribute);
        const ssize_t size = ::flistxattr(fd, list.data(), list.size());
        if (size < 0 && errno != EOPNOTSUPP) return failed("list attributes");
        std::map<std::string, std::string> kept;
        for (const char* at = list.data(); size > 0 && at < list.data() + size;
             at += std::strlen(at) + 1) {
            const std::string name = at;
            const bool marks_opaque =
                name == "trusted.overlay.opaque" || name == "user.overlay.opaque";
            if (!marks_opaque && !name.starts_with("user.") && name != "security.capability") {
                continue;
            }
            std::string value(kLargestAttribute, '\0');
            const ssize_t length = ::fgetxattr(fd, at, value.data(), value.size());
            if (length < 0) return failed("read attribute " + name);
            value.resize(static_cast<std::size_t>(length));
            if (marks_opaque && value == "y") *opaque = true;
            kept.emplace(marks_opaque ? "opaque" : name, std::move(value));
        }
        feed_.number(kept.size());
        for (const auto& [name, value] : kept) {
            feed_.text(name);
            feed_.text(value);
        }
        return {};
    }

    Status read_content(int fd, off_t size) {
        feed_.number(static_cast<std::uint64_t>(size));
        off_t at = 0;
        while (at < size) {
            const off_t data = ::lseek(fd, at, SEEK_DATA);
            if (data < 0 && errno == ENXIO) break;
            if (data > at) at = data - data % static_cast<off_t>(kBlock);
            auto read = read_piece(fd, at);
            if (!read) return read.error();
            if (*read == 0) return Error(ErrorCode::io, "layer: " + path_ + ": became shorter");
            at += static_cast<off_t>(*read);
        }
        feed_.number(UINT64_MAX);
        return {};
    }

    /// From a multiple of the block's size on. Returns how much there was.
    Result<std::size_t> read_piece(int fd, off_t at) {
        if (stop_.stop_requested()) {
            return Error(ErrorCode::cancelled, "layer: reading it was broken off");
        }
        std::size_t filled = 0;
        while (filled < buffer_.size()) {
            const ssize_t got = ::pread(fd, buffer_.data() + filled, buffer_.size() - filled,
                                        at + static_cast<off_t>(filled));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return failed("read");
            if (got == 0) break;
            filled += static_cast<std::size_t>(got);
        }
        for (std::size_t begin = 0; begin < filled; begin += kBlock) {
            const std::span<const char> bytes(buffer_.data() + begin,
                                              std::min(kBlock, filled - begin));
            if (is_zero(bytes)) continue;
            feed_.number(static_cast<std::uint64_t>(at) + begin);
            feed_.bytes(bytes);
        }
        return filled;
    }

    const std::stop_token& stop_;
    Feed feed_;
    MadeLayer layer_;
    std::string path_;
    std::map<ino_t, std::string> links_;
    std::vector<char> buffer_ = std::vector<char>(kBuffer);
};

}  // namespace

Result<MadeLayer> identify_layer(const std::filesystem::path& directory,
                                 const std::stop_token& stop) {
    UniqueFd root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!root) return Error::from_errno(errno, "open " + directory.string());
    return LayerReader(stop).run(std::move(root));
}

}  // namespace opensandbox::image
