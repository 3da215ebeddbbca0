#include "agent/isolated/upper_commit.hpp"

#include "agent/isolated/upper_changes.hpp"
#include "base/unique_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxConflicts = 10;

enum class Reach : unsigned char {
    none,    ///< nothing at or below it is selected
    inside,  ///< something below it is
    whole,
};

Reach reach_of(const std::string& path, const Selection& selection) {
    if (selection.empty()) return Reach::whole;
    Reach reach = Reach::none;
    for (const std::string& chosen : selection) {
        if (chosen.empty() || path == chosen || path.starts_with(chosen + "/")) return Reach::whole;
        if (chosen.starts_with(path + "/")) reach = Reach::inside;
    }
    return reach;
}

std::optional<struct stat> entry_to_commit(int directory, const std::string& name) {
    struct stat info{};
    if (directory < 0 || ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return std::nullopt;
    }
    return info;
}

bool later(const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/// One look for changes of others.
class ConflictSearch {
  public:
    ConflictSearch(const Selection& selection, const timespec& since)
        : selection_(selection), since_(since) {}

    Status walk(int lower, int upper, const std::string& prefix) {
        Result<std::vector<std::string>> names = names_in(upper);
        if (!names) return names.error();
        for (const std::string& name : *names) {
            const std::string path = prefix + name;
            if (found.size() >= kMaxConflicts) return {};
            auto now = entry_to_commit(upper, name);
            auto below = entry_to_commit(lower, name);
            Reach reach = reach_of(path, selection_);
            if (!now || !below || reach == Reach::none) continue;
            bool both = S_ISDIR(now->st_mode) && S_ISDIR(below->st_mode);
            if (!both) {
                if (reach != Reach::whole) continue;
                if (Status done = note_changed(lower, name, path, *below); !done) return done;
                continue;
            }
            UniqueFd inner(open_below(upper, name));
            UniqueFd inner_lower(open_below(lower, name));
            if (!inner || !inner_lower) return Error::from_errno(errno, "open " + path);
            if (is_opaque(inner.get())) {
                Status done = note_hidden(inner_lower.get(), inner.get(), path + "/");
                if (!done) return done;
            }
            if (Status done = walk(inner_lower.get(), inner.get(), path + "/"); !done) return done;
        }
        return {};
    }

    std::vector<std::string> found;

  private:
    /// An entry that goes, with all that is in it. The time of a directory itself says only that
    /// something in it changed.
    Status note_changed(int lower, const std::string& name, const std::string& path,
                        const struct stat& below) {
        if (found.size() >= kMaxConflicts) return {};
        if (!S_ISDIR(below.st_mode)) {
            if (later(below.st_ctim, since_)) found.push_back(path);
            return {};
        }
        UniqueFd inner(open_below(lower, name));
        if (!inner) return Error::from_errno(errno, "open " + path);
        return note_hidden(inner.get(), -1, path + "/");
    }

    /// Entries of a lower directory that have no namesake in an opaque one.
    Status note_hidden(int lower, int upper, const std::string& prefix) {
        Result<std::vector<std::string>> names = names_in(lower);
        if (!names) return names.error();
        for (const std::string& name : *names) {
            auto below = entry_to_commit(lower, name);
            if (!below || entry_to_commit(upper, name)) continue;
            if (reach_of(prefix + name, selection_) != Reach::whole) continue;
            Status done = note_changed(lower, name, prefix + name, *below);
            if (!done) return done;
        }
        return {};
    }

    const Selection& selection_;
    timespec since_;
};

/// One commit. Directories are held open on the way down, so no path is looked up twice.
class Commit {
  public:
    Commit(int lower_root, const Selection& selection)
        : lower_root_(lower_root), selection_(selection) {}

    /// `hides`: the lower directory's own entries do not show through.
    Status walk(int lower, int upper, const std::string& prefix, bool hides) {
        Result<std::vector<std::string>> names = names_in(upper);
        if (!names) return names.error();
        if (hides) {
            if (Status done = remove_hidden(lower, *names, prefix); !done) return done;
        }
        for (const std::string& name : *names) {
            Reach reach = reach_of(prefix + name, selection_);
            if (reach == Reach::none) continue;
            Status done = apply(lower, upper, prefix, name, reach, hides);
            if (!done) return done.error().within(prefix + name);
        }
        return {};
    }

  private:
    Status remove_hidden(int lower, const std::vector<std::string>& kept,
                         const std::string& prefix) {
        Result<std::vector<std::string>> names = names_in(lower);
        if (!names) return names.error();
        for (const std::string& name : *names) {
            if (std::ranges::binary_search(kept, name)) continue;
            if (reach_of(prefix + name, selection_) != Reach::whole) continue;
            if (Status done = remove_entry(lower, name); !done) return done;
        }
        return {};
    }

    Status apply(int lower, int upper, const std::string& prefix, const std::string& name,
                 Reach reach, bool hides) {
        auto now = entry_to_commit(upper, name);
        if (!now) return Error::from_errno(errno, "look at");
        auto below = entry_to_commit(lower, name);
        if (S_ISDIR(now->st_mode)) {
            return apply_directory(lower, upper, prefix, name, reach, hides, *now, below);
        }
        if (is_whiteout(*now)) {
            if (below) {
                if (Status done = remove_entry(lower, name); !done) return done;
            }
        } else {
            if (Status done = put_entry(lower, upper, prefix, name, *now, below); !done) {
                return done;
            }
        }
        return remove_entry(upper, name);
    }

    Status put_entry(int lower, int upper, const std::string& prefix, const std::string& name,
                     const struct stat& now, const std::optional<struct stat>& below) {
        // A file cannot be renamed over a directory.
        if (below && S_ISDIR(below->st_mode)) {
            if (Status done = remove_entry(lower, name); !done) return done;
        }
        const std::pair inode(now.st_dev, now.st_ino);
        auto first = linked_.find(inode);
        if (first != linked_.end()) return link_entry(lower_root_, first->second, lower, name);
        // Names that were applied are gone from the upper: the last one looks like the only one.
        if (S_ISREG(now.st_mode) && now.st_nlink > 1) linked_.emplace(inode, prefix + name);
        return copy_entry(upper, lower, name, now);
    }

    Status apply_directory(int lower, int upper, const std::string& prefix, const std::string& name,
                           Reach reach, bool hides, const struct stat& now,
                           const std::optional<struct stat>& below) {
        UniqueFd inner(open_below(upper, name));
        if (!inner) return Error::from_errno(errno, "open");
        bool opaque = hides || is_opaque(inner.get());
        bool merges = below && S_ISDIR(below->st_mode);
        if (below && !merges) {
            if (Status done = remove_entry(lower, name); !done) return done;
        }
        if (!merges && ::mkdirat(lower, name.c_str(), 0700) != 0) {
            return Error::from_errno(errno, "make");
        }
        UniqueFd inner_lower(open_below(lower, name));
        if (!inner_lower) return Error::from_errno(errno, "open");
        Status done = walk(inner_lower.get(), inner.get(), prefix + name + "/", merges && opaque);
        if (!done) return done;
        // Filling it changed its times; a directory on the way to a selected entry stays as it is.
        if (reach == Reach::whole || !merges) {
            if (Status kept = copy_attributes(inner.get(), inner_lower.get(), now); !kept) {
                return kept;
            }
        }
        return reach == Reach::whole ? remove_entry(upper, name) : Status();
    }

    int lower_root_;
    const Selection& selection_;
    /// Where the first name of a file with several names went.
    std::map<std::pair<dev_t, ino_t>, std::string> linked_;
};

}  // namespace

Result<std::vector<std::string>> find_conflicts(int lower, int upper, const Selection& selection,
                                                const timespec& since) {
    ConflictSearch search(selection, since);
    if (Status done = search.walk(lower, upper, ""); !done) return done.error();
    return std::move(search.found);
}

Status commit_upper(int lower, int upper, const Selection& selection) {
    Status done = Commit(lower, selection).walk(lower, upper, "", is_opaque(upper));
    if (!done) return done;
    if (!selection.empty()) return {};
    struct stat info{};
    if (::fstat(upper, &info) != 0) return Error::from_errno(errno, "look at the upper");
    return copy_attributes(upper, lower, info);
}

}  // namespace opensandbox::agent
