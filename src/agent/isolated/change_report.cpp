#include "agent/isolated/change_report.hpp"

#include "agent/files/file_info.hpp"
#include "agent/isolated/overlay_commit.hpp"
#include "agent/isolated/text_diff.hpp"
#include "base/json_string.hpp"

#include <linux/openat2.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// Changes in one answer, and the largest file whose text is compared.
constexpr std::size_t kMaxChanges = 50'000;
constexpr std::size_t kMaxChangeText = std::size_t{2} << 20;
constexpr std::size_t kMaxContent = std::size_t{16} << 20;

std::string_view kind_of(UpperChange::Kind kind) {
    switch (kind) {
        case UpperChange::Kind::added: return "added";
        case UpperChange::Kind::modified: return "modified";
        case UpperChange::Kind::deleted: break;
    }
    return "deleted";
}

std::string_view type_of(mode_t mode) {
    if (S_ISREG(mode)) return "file";
    if (S_ISDIR(mode)) return "directory";
    return S_ISLNK(mode) ? "symlink" : "other";
}

void append_change(std::string& out, const std::string& overlay, const UpperChange& change) {
    if (out.back() != '[') out += ',';
    out += "{\"path\":";
    append_json_string(out, overlay + "/" + change.path);
    out += ",\"kind\":\"";
    out += kind_of(change.kind);
    out += "\",\"type\":\"";
    out += type_of(change.info.st_mode);
    out += "\",\"size\":";
    append_integer(out, change.info.st_size);
    out += ",\"mode\":";
    append_integer(out, mode_to_wire(change.info.st_mode & 07777));
    out += '}';
}

/// A regular file below a directory, no link followed, at most `limit` bytes; empty when there is
/// none such.
Result<std::string> read_below(int directory, const std::string& path, std::size_t limit) {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    UniqueFd file(
        static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::string();
    if (static_cast<std::uint64_t>(info.st_size) > limit) {
        return Error(ErrorCode::too_large, path + " is larger than 16 MiB: download it");
    }
    std::string content(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t have = 0;
    while (have < content.size()) {
        ssize_t got = ::read(file.get(), content.data() + have, content.size() - have);
        if (got < 0) return Error::from_errno(errno, "read " + path);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    content.resize(have);
    return content;
}

}  // namespace

Result<std::string> describe_changes(IsolatedSession& session) {
    std::string out = "\"changes\":[";
    std::size_t left = kMaxChanges;
    bool truncated = false;
    for (const SessionOverlay& overlay : session.overlays()) {
        Result<UniqueFd> upper = open_upper(overlay, session.namespaces());
        if (!upper) return upper.error();
        bool more = false;
        auto changes = list_changes(overlay.lower.get(), upper->get(), left, more);
        if (!changes) return changes.error();
        for (const UpperChange& change : *changes)
            append_change(out, overlay.path, change);
        left -= changes->size();
        truncated = truncated || more;
    }
    return out + (truncated ? "],\"truncated\":true" : "],\"truncated\":false");
}

Result<PathDifference> difference_of(IsolatedSession& session, const std::string& path) {
    for (const SessionOverlay& overlay : session.overlays()) {
        if (!is_within(path, overlay.path) || path == overlay.path) continue;
        std::string inner = path.substr(overlay.path.size() + 1);
        Result<UniqueFd> upper = open_upper(overlay, session.namespaces());
        if (!upper) return upper.error();
        bool more = false;
        auto changes = list_changes(overlay.lower.get(), upper->get(), std::size_t{1} << 24, more);
        if (!changes) return changes.error();
        auto at = std::ranges::find(*changes, inner, &UpperChange::path);
        if (at == changes->end()) continue;
        bool added = at->kind == UpperChange::Kind::added;
        bool deleted = at->kind == UpperChange::Kind::deleted;
        Result<std::string> before =
            added ? std::string() : read_below(overlay.lower.get(), inner, kMaxContent);
        Result<std::string> after =
            deleted ? std::string() : read_below(upper->get(), inner, kMaxContent);
        if (!before) return before.error();
        if (!after) return after.error();
        PathDifference out;
        out.text = before->size() <= kMaxChangeText && after->size() <= kMaxChangeText &&
                   is_text(*before) && is_text(*after);
        if (out.text) {
            out.body = unified_diff(*before, *after, added ? "/dev/null" : "a" + path,
                                    deleted ? "/dev/null" : "b" + path);
        } else {
            out.body = std::move(*after);
        }
        return out;
    }
    return Error(ErrorCode::not_found, path + " is not changed");
}

}  // namespace opensandbox::agent
