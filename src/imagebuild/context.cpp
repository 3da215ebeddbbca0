#include "imagebuild/context.hpp"

#include "base/digest.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <vector>

namespace opensandbox::imagebuild {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::size_t kMostEntries = 2'000'000;

Error failed(std::string_view what, const std::filesystem::path& path) {
    const int number = errno;
    return Error::from_errno(number, std::string(what) + " " + path.string());
}

Result<std::vector<std::string>> names_in(const std::filesystem::path& directory) {
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
    if (!stream) return failed("list", directory);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return failed("list", directory);
    return names;
}

/// Empty for what no image takes from a context.
Result<std::optional<ContextEntry>> entry_at(const std::filesystem::path& path) {
    using Entry = std::optional<ContextEntry>;
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return Entry();
        return failed("read", path);
    }
    ContextEntry entry;
    entry.mode = status.st_mode & 07777;
    entry.modified = status.st_mtim;
    if (S_ISDIR(status.st_mode)) {
        entry.kind = EntryKind::directory;
    } else if (S_ISREG(status.st_mode)) {
        entry.size = static_cast<std::uint64_t>(status.st_size);
    } else if (S_ISLNK(status.st_mode)) {
        entry.kind = EntryKind::link;
        std::error_code broken;
        entry.target = std::filesystem::read_symlink(path, broken).string();
        if (broken) return Error::from_errno(broken.value(), "read " + path.string());
    } else {
        return Entry();
    }
    return Entry(std::move(entry));
}

class Walk {
  public:
    Walk(const std::filesystem::path& top, const IgnoreRules& rules, ContextEntries& out)
        : top_(top), rules_(rules), out_(out) {}

    /// `kept` says whether the directory itself is part of the context.
    Status enter(const std::string& below, bool kept) {
        auto names = names_in(below.empty() ? top_ : top_ / below);
        if (!names) {
            // What is ignored need not be readable.
            if (!kept) return {};
            return names.error();
        }
        for (const std::string& name : *names) {
            const std::string path = below.empty() ? name : below + "/" + name;
            if (Status added = add(path); !added) return added;
        }
        return {};
    }

  private:
    Status add(const std::string& path) {
        const bool ignored = rules_.ignores(path);
        if (ignored && !rules_.has_exceptions()) return {};
        auto entry = entry_at(top_ / path);
        if (!entry) return ignored ? Status() : Status(entry.error());
        if (!*entry) return {};
        const bool directory = (*entry)->kind == EntryKind::directory;
        if (!ignored) {
            if (Status kept = keep(path, std::move(**entry)); !kept) return kept;
        }
        return directory ? enter(path, !ignored) : Status();
    }

    /// With the directories above it, which may be ignored by themselves.
    Status keep(const std::string& path, ContextEntry entry) {
        for (auto slash = path.find('/'); slash != std::string::npos;
             slash = path.find('/', slash + 1)) {
            const std::string above = path.substr(0, slash);
            if (out_.contains(above)) continue;
            auto parent = entry_at(top_ / above);
            if (!parent) return parent.error();
            if (*parent) out_[above] = std::move(**parent);
        }
        if (out_.size() >= kMostEntries) {
            return Error(
                ErrorCode::too_large,
                "the context has more than 2000000 files; a .dockerignore leaves some out");
        }
        out_[path] = std::move(entry);
        return {};
    }

    const std::filesystem::path& top_;
    const IgnoreRules& rules_;
    ContextEntries& out_;
};

}  // namespace

Result<Context> Context::open(const std::filesystem::path& directory, const IgnoreRules& rules) {
    struct stat status{};
    if (::stat(directory.c_str(), &status) != 0) return failed("context", directory);
    if (!S_ISDIR(status.st_mode)) {
        return Error(ErrorCode::invalid_argument,
                     "context " + directory.string() + ": is not a directory");
    }
    Context out;
    out.directory_ = directory;
    ContextEntry top;
    top.kind = EntryKind::directory;
    top.mode = status.st_mode & 07777;
    top.modified = status.st_mtim;
    out.entries_[""] = std::move(top);
    if (Status walked = Walk(out.directory_, rules, out.entries_).enter("", true); !walked) {
        return walked.error();
    }
    return out;
}

Result<std::string> Context::digest_of(const std::string& path) {
    const std::filesystem::path full = directory_ / path;
    UniqueFd file(::open(full.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) return failed("open", full);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return failed("read", full);
    const std::string version = path + '\0' + std::to_string(status.st_size) + '.' +
                                std::to_string(status.st_mtim.tv_sec) + '.' +
                                std::to_string(status.st_mtim.tv_nsec);
    if (auto known = digests_.find(version); known != digests_.end()) return known->second;
    Sha256 hash;
    std::vector<char> piece(kPiece);
    for (;;) {
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("read", full);
        if (count == 0) break;
        hash.update(std::span<const char>(piece.data(), static_cast<std::size_t>(count)));
    }
    return digests_[version] = hash.finish();
}

Result<std::optional<std::string>> read_text_file(const std::filesystem::path& path,
                                                  std::size_t limit) {
    using Text = std::optional<std::string>;
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) {
        if (errno == ENOENT) return Text();
        return failed("open", path);
    }
    std::string text;
    std::string piece(64 * 1024, '\0');
    for (;;) {
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("read", path);
        if (count == 0) return Text(std::move(text));
        text.append(piece, 0, static_cast<std::size_t>(count));
        if (text.size() > limit) {
            return Error(ErrorCode::too_large,
                         path.string() + ": has more than " + std::to_string(limit) + " bytes");
        }
    }
}

}  // namespace opensandbox::imagebuild
