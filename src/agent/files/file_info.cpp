#include "agent/files/file_info.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>

namespace opensandbox::agent {
namespace {

std::string to_text(const statx_timestamp& time) {
    return to_rfc3339(Timestamp(std::chrono::seconds(time.tv_sec) +
                                std::chrono::microseconds(time.tv_nsec / 1000)));
}

std::string_view type_of(unsigned mode) {
    if (S_ISREG(mode)) return "file";
    if (S_ISDIR(mode)) return "directory";
    if (S_ISLNK(mode)) return "symlink";
    return "other";
}

}  // namespace

const std::string& FileInfoWriter::owner(uid_t id) {
    auto [at, fresh] = owners_.try_emplace(id);
    if (fresh) at->second = accounts_.user_name(id);
    return at->second;
}

const std::string& FileInfoWriter::group(gid_t id) {
    auto [at, fresh] = groups_.try_emplace(id);
    if (fresh) at->second = accounts_.group_name(id);
    return at->second;
}

Status FileInfoWriter::append(std::string& out, const std::string& path) {
    struct statx info{};
    if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                &info) != 0) {
        return Error::from_errno(errno, path);
    }
    // Some file systems claim to know the time of birth and say 0.
    bool has_birth = (info.stx_mask & STATX_BTIME) != 0 && info.stx_btime.tv_sec != 0;
    out += "{\"path\":";
    append_json_string(out, path);
    out += ",\"type\":\"";
    out += type_of(info.stx_mode);
    out += "\",\"size\":";
    append_integer(out, static_cast<std::int64_t>(info.stx_size));
    out += ",\"modified_at\":\"" + to_text(info.stx_mtime) + "\"";
    out += ",\"created_at\":\"" + to_text(has_birth ? info.stx_btime : info.stx_ctime) + "\"";
    out += ",\"owner\":";
    append_json_string(out, owner(info.stx_uid));
    out += ",\"group\":";
    append_json_string(out, group(info.stx_gid));
    out += ",\"mode\":";
    append_integer(out, mode_to_wire(info.stx_mode & 07777));
    out += '}';
    return {};
}

int mode_to_wire(unsigned mode) {
    int digits = 0;
    for (int shift = 9; shift >= 0; shift -= 3) {
        digits = digits * 10 + static_cast<int>((mode >> shift) & 7);
    }
    return digits;
}

Result<unsigned> mode_from_wire(std::int64_t digits) {
    unsigned mode = 0;
    bool fits = digits >= 0 && digits <= 7777;
    for (std::int64_t unit = 1000; fits && unit > 0; unit /= 10) {
        auto digit = static_cast<unsigned>(digits / unit % 10);
        fits = digit <= 7;
        mode = mode * 8 + digit;
    }
    if (!fits) {
        return Error(ErrorCode::invalid_argument,
                     "mode: must be up to four octal digits, such as 644");
    }
    return mode;
}

}  // namespace opensandbox::agent
