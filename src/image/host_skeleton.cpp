#include "image/host_skeleton.hpp"

#include "base/digest.hpp"
#include "base/unique_fd.hpp"
#include "image/host_files.hpp"
#include "image/input_stream.hpp"
#include "image/staging.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <unistd.h>

namespace opensandbox::image {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kLargestFile = 4ULL << 20;
constexpr auto kMergedNames =
    std::to_array<std::string_view>({"bin", "lib", "lib32", "lib64", "libx32", "sbin"});
/// The package database's list of what is installed; the rest of it is large and not needed to
/// run programs.
constexpr std::string_view kPackageStatus = "var/lib/dpkg/status";

Error call_failed(std::string_view call, const fs::path& path) {
    int number = errno;
    return Error::from_errno(number, std::string(call) + " " + path.string());
}

std::string stamp_of(const struct stat& status) {
    return std::to_string(status.st_ino) + "." + std::to_string(status.st_ctim.tv_sec) + "." +
           std::to_string(status.st_ctim.tv_nsec);
}

/// Empty when there is no such file.
std::string stamp_of(const fs::path& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 ? stamp_of(status) : std::string();
}

class Survey {
  public:
    explicit Survey(const fs::path& root) : root_(root) {
        struct stat status{};
        // An ordinary user's namespace shows the host's root as another.
        if (::stat(root.c_str(), &status) == 0) owner_ = status.st_uid;
    }

    void add(const std::string& path) {
        struct stat status{};
        if (::lstat((root_ / path).c_str(), &status) != 0 || status.st_uid != owner_) return;
        bool link = S_ISLNK(status.st_mode), directory = S_ISDIR(status.st_mode);
        if (!link && !directory && !S_ISREG(status.st_mode)) return;
        if (!link && !(status.st_mode & S_IROTH)) return;
        if (S_ISREG(status.st_mode) && status.st_size > static_cast<off_t>(kLargestFile)) {
            if (path != kPackageStatus) return;
        }
        if (!seen_.insert(path).second) return;
        HostSource source;
        source.path = path;
        source.mode = status.st_mode;
        source.size = link || directory ? 0 : static_cast<std::uint64_t>(status.st_size);
        source.stamp = stamp_of(status);
        sources_.push_back(std::move(source));
        if (directory) add_children(path, "");
    }

    /// What in the directory begins with `prefix`.
    void add_children(const std::string& path, std::string_view prefix) {
        std::error_code ec;
        for (fs::directory_iterator it(root_ / path, ec), end; !ec && it != end; it.increment(ec)) {
            std::string name = it->path().filename().string();
            // Compressed manuals among the alternatives: many, and of no use to programs.
            if (name.starts_with(prefix) && !name.ends_with(".gz")) add(path + "/" + name);
        }
    }

    std::vector<HostSource> take() {
        std::ranges::sort(sources_, {}, &HostSource::path);
        return std::move(sources_);
    }

  private:
    const fs::path& root_;
    uid_t owner_ = 0;
    std::set<std::string> seen_;
    std::vector<HostSource> sources_;
};

/// The skeleton's links into /usr stand for the host's own; anything else cannot be mapped.
Status check_merged(const fs::path& root, std::string_view name) {
    struct stat status{};
    fs::path path = root / name;
    if (::lstat(path.c_str(), &status) != 0) return {};
    std::error_code ec;
    std::string target = S_ISLNK(status.st_mode) ? fs::read_symlink(path, ec).string() : "";
    if (target.starts_with("usr/") || target.starts_with("/usr/")) return {};
    return Error(ErrorCode::unsupported, "image \"host\": /" + std::string(name) +
                                             " of this machine is not a link into /usr; import "
                                             "an image instead");
}

class Builder {
  public:
    Builder(const fs::path& host, const fs::path& into) : host_(host), into_(into) {}

    Status directory(const std::string& path, unsigned mode, unsigned owner) {
        fs::path made = into_ / path;
        if (::mkdir(made.c_str(), 0755) != 0 && errno != EEXIST) return call_failed("make", made);
        if (::geteuid() == 0 && ::lchown(made.c_str(), owner, owner) != 0) {
            return call_failed("set the owner of", made);
        }
        if (::chmod(made.c_str(), mode) != 0) return call_failed("set the mode of", made);
        note('d', path, mode, std::to_string(owner));
        return {};
    }

    Status link(const std::string& path, const std::string& target) {
        if (auto ok = parents(path); !ok) return ok;
        fs::path made = into_ / path;
        if (::symlink(target.c_str(), made.c_str()) != 0) return call_failed("make", made);
        note('l', path, 0, target);
        return {};
    }

    Status file(const std::string& path, std::string_view content, unsigned mode) {
        if (auto ok = parents(path); !ok) return ok;
        fs::path made = into_ / path;
        UniqueFd fd(
            ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!fd) return call_failed("make", made);
        if (auto ok = write_all(fd.get(), content); !ok) return ok.error().within(made.string());
        if (::fchmod(fd.get(), mode) != 0) return call_failed("set the mode of", made);
        note('f', path, mode, sha256_hex(content));
        size_ += content.size();
        return {};
    }

    Status copy(const HostSource& source) {
        fs::path from = host_ / source.path;
        if (S_ISDIR(source.mode)) {
            if (auto ok = parents(source.path); !ok) return ok;
            return directory(source.path, 0755, 0);
        }
        if (S_ISLNK(source.mode)) {
            std::error_code ec;
            std::string target = fs::read_symlink(from, ec).string();
            return ec ? Status() : link(source.path, target);
        }
        auto content = read_file(from);
        // A file may go between the survey and now; the next survey tells.
        if (!content || !is_harmless(*content)) return {};
        return file(source.path, *content, source.mode & 0755);
    }

    Skeleton finish() { return {hash_.finish(), size_}; }

  private:
    Status parents(const std::string& path) {
        fs::path parent = fs::path(path).parent_path();
        struct stat status{};
        if (parent.empty() || ::lstat((into_ / parent).c_str(), &status) == 0) return {};
        if (auto ok = parents(parent.string()); !ok) return ok;
        return directory(parent.string(), 0755, 0);
    }

    void note(char kind, const std::string& path, unsigned mode, const std::string& detail) {
        std::string line(1, kind);
        line += " " + path + " " + std::to_string(mode) + " " + detail + "\n";
        hash_.update(line);
    }

    const fs::path& host_;
    const fs::path& into_;
    fs::path known_parent_;  ///< exists
    Sha256 hash_;
    std::uint64_t size_ = 0;
};

}  // namespace

Result<HostSurvey> survey_host(const fs::path& host_root) {
    HostSurvey found;
    found.etc_stamp = stamp_of(host_root / "etc");
    Survey survey(host_root);
    for (std::string_view name : kMergedNames) {
        if (auto ok = check_merged(host_root, name); !ok) return ok.error();
        survey.add(std::string(name));
    }
    for (std::string_view name : host_etc_selection()) {
        if (name.ends_with('*')) {
            survey.add_children("etc", name.substr(0, name.size() - 1));
        } else {
            survey.add("etc/" + std::string(name));
        }
    }
    survey.add(std::string(kPackageStatus));
    found.sources = survey.take();
    return found;
}

std::string HostSurvey::fingerprint() const {
    constexpr std::string_view kLayout = "skeleton 1\n";  // raise it when the skeleton changes
    Sha256 hash;
    hash.update(kLayout);
    for (const HostSource& source : sources) {
        std::string line = source.path + " " + std::to_string(source.mode) + " " +
                           std::to_string(source.size) + " " + source.stamp + "\n";
        hash.update(line);
    }
    return hash.finish();
}

bool HostSurvey::still_holds(const fs::path& host_root) const {
    if (stamp_of(host_root / "etc") != etc_stamp) return false;
    std::string_view directory;  // the last one seen; its links follow it
    return std::ranges::all_of(sources, [&](const HostSource& source) {
        if (S_ISDIR(source.mode)) directory = source.path;
        std::string_view parent = source.path;
        parent = parent.substr(0, parent.rfind('/'));
        if (S_ISLNK(source.mode) && parent == directory) return true;
        return stamp_of(host_root / source.path) == source.stamp;
    });
}

Result<Skeleton> build_skeleton(const fs::path& host_root, const HostSurvey& survey,
                                const fs::path& into) {
    Builder builder(host_root, into);
    for (const SkeletonDirectory& made : skeleton_directories()) {
        if (auto ok = builder.directory(std::string(made.path), made.mode, made.owner); !ok) {
            return ok.error();
        }
    }
    for (const HostSource& source : survey.sources) {
        bool merged = std::ranges::find(kMergedNames, source.path) != kMergedNames.end();
        if (!merged) {
            if (auto ok = builder.copy(source); !ok) return ok.error();
            continue;
        }
        std::error_code ec;
        std::string target = fs::read_symlink(host_root / source.path, ec).string();
        if (ec) continue;
        if (target.starts_with('/')) target.erase(0, 1);
        if (auto ok = builder.link(source.path, target); !ok) return ok.error();
    }
    std::error_code ec;
    bool bash = fs::exists(host_root / "usr/bin/bash", ec);
    for (const GeneratedFile& made : generated_accounts(bash ? "/bin/bash" : "/bin/sh")) {
        if (auto ok = builder.file(made.path, made.content, made.mode); !ok) return ok.error();
    }
    if (auto ok = builder.link("etc/mtab", "/proc/self/mounts"); !ok) return ok.error();
    if (auto ok = builder.link("var/run", "/run"); !ok) return ok.error();
    if (auto ok = builder.link("var/lock", "/run/lock"); !ok) return ok.error();
    if (auto ok = builder.file("var/lib/dpkg/info/format", "1\n", 0644); !ok) return ok.error();
    return builder.finish();
}

}  // namespace opensandbox::image
