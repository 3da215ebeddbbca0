#include "egress/policy/policy_files.hpp"

#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"
#include "egress/policy/policy_json.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace opensandbox::egress {
namespace {

namespace fs = std::filesystem;

Error failed(int number, std::string_view what, const fs::path& path) {
    return Error::from_errno(number, std::string(what) + " " + path.string());
}

/// The content of a regular file; not_found when there is none.
Result<std::string> read_text(const fs::path& path) {
    // A pipe in place of the file must not hold the start up.
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return failed(errno, "open", path);
    struct stat info{};
    if (::fstat(fd.get(), &info) < 0) return failed(errno, "stat", path);
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::invalid_argument, path.string() + ": must be a regular file");
    }
    std::string text;
    std::array<char, 65536> buffer;
    while (true) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(errno, "read", path);
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > kMaxPolicyBytes) {
            return Error(ErrorCode::too_large, path.string() + ": must not be over 16 MiB");
        }
    }
}

/// "" for a missing file.
Result<std::string> read_optional(const fs::path& path) {
    Result<std::string> text = read_text(path);
    if (!text && text.error().code() == ErrorCode::not_found) return std::string();
    return text;
}

Result<std::vector<Rule>> read_rules(const fs::path& directory, std::string_view file,
                                     Action action) {
    const Result<std::string> text = read_optional(directory / file);
    if (!text) return text.error();
    return parse_overlay(*text, action, file);
}

/// Writes all of it and waits for the disk.
Status write_all(int fd, std::string_view content, const fs::path& path) {
    while (!content.empty()) {
        const ssize_t written = ::write(fd, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return failed(written < 0 ? errno : ENOSPC, "write", path);
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(fd) < 0) return failed(errno, "sync", path);
    return {};
}

Status rewrite_in_place(const fs::path& path, std::string_view content) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!fd) return failed(errno, "open", path);
    return write_all(fd.get(), content, path);
}

/// The file's name is on the disk, too, once its directory is.
Status sync_directory(const fs::path& file) {
    const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) < 0) return failed(errno, "sync", parent);
    return {};
}

}  // namespace

Result<Overlay> read_overlay(const fs::path& directory) {
    Result<std::vector<Rule>> deny = read_rules(directory, kDenyFile, Action::deny);
    if (!deny) return deny.error();
    Result<std::vector<Rule>> allow = read_rules(directory, kAllowFile, Action::allow);
    if (!allow) return allow.error();
    Overlay overlay;
    overlay.deny = std::move(*deny);
    overlay.allow = std::move(*allow);
    return overlay;
}

Result<LogSkip> read_log_skip(const fs::path& directory) {
    const Result<std::string> text = read_optional(directory / kLogSkipFile);
    if (!text) return text.error();
    return LogSkip::parse(*text, kLogSkipFile);
}

OverlayStamp stamp_overlay(const fs::path& directory) {
    OverlayStamp stamp;
    std::size_t i = 0;
    for (const std::string_view file : {kDenyFile, kAllowFile}) {
        struct stat info{};
        const bool there = ::stat((directory / file).c_str(), &info) == 0;
        stamp.files[i++] = {
            there ? info.st_size : -1,
            there ? info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec : 0};
    }
    return stamp;
}

Result<InitialPolicy> initial_policy(const std::string& file, const std::string& rules) {
    InitialPolicy initial;
    if (!file.empty()) {
        const Result<std::string> text = read_text(file);
        std::string why;
        if (!text) {
            why = text.error().message();
        } else if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
            why = "the file is empty";
        } else if (Result<Policy> policy = parse_policy(*text); policy) {
            initial.policy = std::move(*policy);
            initial.source = "file";
            return initial;
        } else {
            why = policy.error().message();
        }
        initial.warnings.push_back("policy file " + file + " is not used: " + why);
    }
    Result<Policy> policy = parse_policy(rules);
    if (!policy) return policy.error().within("OPENSANDBOX_EGRESS_RULES");
    initial.policy = std::move(*policy);
    initial.source = rules.empty() ? "default" : "environment";
    return initial;
}

Status write_policy(const fs::path& file, const Policy& policy) {
    const std::string content = to_saved_json(policy);
    fs::path aside = file;
    aside += ".new";
    struct stat old{};
    const bool there = ::stat(file.c_str(), &old) == 0;
    UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    // A file that is mounted by itself stands in a directory that is not to be written to.
    if (!fd && there && (errno == EACCES || errno == EROFS || errno == EPERM)) {
        return rewrite_in_place(file, content);
    }
    if (!fd) return failed(errno, "create", aside);
    ScopeExit remove([&] { ::unlink(aside.c_str()); });
    if (there && ::fchmod(fd.get(), old.st_mode & 07777) < 0) return failed(errno, "chmod", aside);
    if (Status written = write_all(fd.get(), content, aside); !written) return written;
    if (::rename(aside.c_str(), file.c_str()) < 0) {
        // The file itself is a mount point.
        if (errno == EBUSY) return rewrite_in_place(file, content);
        return failed(errno, "replace", file);
    }
    remove.dismiss();
    return sync_directory(file);
}

}  // namespace opensandbox::egress
