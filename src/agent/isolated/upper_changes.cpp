#include "agent/isolated/upper_changes.hpp"

#include "base/unique_fd.hpp"

#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxDepth = 1024;

std::optional<struct stat> entry_of(int directory, const std::string& name) {
    struct stat info{};
    if (directory < 0 || ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return std::nullopt;
    }
    return info;
}

bool same_attributes(const struct stat& a, const struct stat& b) {
    return a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

bool same_content(int lower, int upper, const std::string& name) {
    UniqueFd a(::openat(lower, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    UniqueFd b(::openat(upper, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!a || !b) return false;
    constexpr std::size_t kPiece = std::size_t{64} * 1024;
    auto pieces = std::make_unique_for_overwrite<char[]>(2 * kPiece);
    off_t at = 0;
    while (true) {
        ssize_t left = ::pread(a.get(), pieces.get(), kPiece, at);
        ssize_t right = ::pread(b.get(), pieces.get() + kPiece, kPiece, at);
        if (left != right || left < 0) return false;
        if (left == 0) return true;
        if (std::memcmp(pieces.get(), pieces.get() + kPiece, static_cast<std::size_t>(left)) != 0) {
            return false;
        }
        at += left;
    }
}

/// Whether the entry differs from the one of the same name and type below.
bool differs(int lower, int upper, const std::string& name, const struct stat& below,
             const struct stat& now) {
    if (!same_attributes(below, now)) return true;
    if (S_ISDIR(now.st_mode)) return false;
    if (S_ISLNK(now.st_mode)) {
        auto a = read_link(lower, name, below);
        auto b = read_link(upper, name, now);
        return !a || !b || *a != *b;
    }
    if (!S_ISREG(now.st_mode)) return below.st_rdev != now.st_rdev;
    if (below.st_size != now.st_size) return true;
    return !same_content(lower, upper, name);
}

/// One comparison.
class Comparison {
  public:
    explicit Comparison(std::size_t limit) : limit_(limit) {}

    Status walk(int lower, int upper, const std::string& prefix, bool hides_lower,
                std::size_t depth) {
        if (depth > kMaxDepth) {
            return Error(ErrorCode::io, "directories are nested more than 1024 deep");
        }
        Result<std::vector<std::string>> names = names_in(upper);
        if (!names) return names.error();
        if (hides_lower) {
            if (Status done = report_hidden(lower, *names, prefix); !done) return done;
        }
        for (const std::string& name : *names) {
            if (full()) return {};
            if (Status done = compare(lower, upper, prefix, name, hides_lower, depth); !done) {
                return done;
            }
        }
        return {};
    }

    std::vector<UpperChange> changes;
    bool more = false;

  private:
    bool full() {
        if (changes.size() < limit_) return false;
        more = true;
        return true;
    }

    void add(std::string path, UpperChange::Kind kind, const struct stat& info) {
        if (!full()) changes.emplace_back(std::move(path), kind, info);
    }

    /// Everything of the lower directory that has no namesake in an opaque one is gone.
    Status report_hidden(int lower, const std::vector<std::string>& kept,
                         const std::string& prefix) {
        if (lower < 0) return {};
        Result<std::vector<std::string>> names = names_in(lower);
        if (!names) return names.error();
        for (const std::string& name : *names) {
            if (std::ranges::binary_search(kept, name)) continue;
            if (auto below = entry_of(lower, name)) {
                add(prefix + name, UpperChange::Kind::deleted, *below);
            }
        }
        return {};
    }

    Status compare(int lower, int upper, const std::string& prefix, const std::string& name,
                   bool hides_lower, std::size_t depth) {
        auto now = entry_of(upper, name);
        if (!now) return {};
        auto below = entry_of(lower, name);
        if (is_whiteout(*now)) {
            if (below) add(prefix + name, UpperChange::Kind::deleted, *below);
            return {};
        }
        bool same_type = below && (below->st_mode & S_IFMT) == (now->st_mode & S_IFMT);
        if (!below) {
            add(prefix + name, UpperChange::Kind::added, *now);
        } else if (!same_type || differs(lower, upper, name, *below, *now)) {
            add(prefix + name, UpperChange::Kind::modified, *now);
        }
        if (!S_ISDIR(now->st_mode)) return {};
        UniqueFd inner(open_below(upper, name));
        if (!inner) return Error::from_errno(errno, "open " + prefix + name);
        UniqueFd inner_lower;
        if (same_type) inner_lower.reset(open_below(lower, name));
        return walk(inner_lower.get(), inner.get(), prefix + name + "/",
                    hides_lower || is_opaque(inner.get()), depth + 1);
    }

    std::size_t limit_;
};

}  // namespace

bool is_whiteout(const struct stat& info) {
    return S_ISCHR(info.st_mode) && info.st_rdev == ::makedev(0, 0);
}

bool is_opaque(int directory) {
    for (const char* name : {"trusted.overlay.opaque", "user.overlay.opaque"}) {
        char value = 0;
        if (::fgetxattr(directory, name, &value, 1) == 1 && value == 'y') return true;
    }
    return false;
}

Result<std::vector<std::string>> names_in(int directory) {
    // A descriptor of its own: reading moves the position.
    int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) return Error::from_errno(errno, "open a directory");
    auto close = [](DIR* stream) { ::closedir(stream); };
    std::unique_ptr<DIR, decltype(close)> stream(::fdopendir(own), close);
    if (!stream) {
        ::close(own);
        return Error::from_errno(errno, "read a directory");
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream.get())) {
        std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
}

int open_below(int directory, const std::string& name) {
    return ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

Result<std::string> read_link(int directory, const std::string& name, const struct stat& info) {
    std::string target(static_cast<std::size_t>(std::max<off_t>(info.st_size, PATH_MAX)), '\0');
    ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
    if (size < 0) return Error::from_errno(errno, "read the link " + name);
    target.resize(static_cast<std::size_t>(size));
    return target;
}

Result<std::vector<UpperChange>> list_changes(int lower, int upper, std::size_t limit, bool& more) {
    Comparison comparison(limit);
    if (Status done = comparison.walk(lower, upper, "", is_opaque(upper), 0); !done) {
        return done.error();
    }
    more = comparison.more;
    return std::move(comparison.changes);
}

}  // namespace opensandbox::agent
