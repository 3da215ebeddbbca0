#include "runtime/native/ground/confinement/caller.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

Errno last_errno() {
    return static_cast<Errno>(errno);
}
constexpr Errno number(int value) {
    return static_cast<Errno>(value);
}

/// The words behind `name:` at the beginning of a line.
std::optional<std::vector<std::string>> words_of(std::string_view text, std::string_view name) {
    const std::string start = std::string(name) + ":";
    std::size_t at = text.starts_with(start) ? 0 : text.find("\n" + start);
    if (at == std::string_view::npos) return std::nullopt;
    if (at > 0) ++at;
    const std::size_t end = text.find('\n', at);
    // What was cut off is not known.
    if (end == std::string_view::npos) return std::nullopt;
    std::istringstream line(std::string(text.substr(at + start.size(), end - at - start.size())));
    std::vector<std::string> words;
    for (std::string word; line >> word;)
        words.push_back(word);
    return words;
}

template <class T>
bool read_number(std::string_view text, T& out, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return error == std::errc() && end == text.data() + text.size();
}

/// Of this thread alone: the C library would change the whole process.
bool set_groups(const std::vector<gid_t>& groups) {
    return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

bool set_file_ids(std::uint32_t uid, std::uint32_t gid) {
    ::setfsgid(gid);
    ::setfsuid(uid);
    // These calls tell of no failure.
    const auto unchanged = static_cast<uid_t>(-1);
    return static_cast<std::uint32_t>(::setfsuid(unchanged)) == uid &&
           static_cast<std::uint32_t>(::setfsgid(unchanged)) == gid;
}

using CapabilitySets = std::array<__user_cap_data_struct, 2>;
bool get_capabilities(CapabilitySets& sets) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capget, &header, sets.data()) == 0;
}
bool set_capabilities(const CapabilitySets& sets) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

/// The number of one of the caller's own descriptors, where the path is the name of one: so the C
/// library writes what older kernels have no call for.
std::optional<int> own_descriptor(std::string_view path) {
    for (const std::string_view start : {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"}) {
        int out = -1;
        if (path.starts_with(start) && read_number(path.substr(start.size()), out) && out >= 0) {
            return out;
        }
    }
    return std::nullopt;
}

bool same_directory(int one, const char* other) {
    struct stat first{};
    struct stat second{};
    return ::fstat(one, &first) == 0 && ::stat(other, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

Result<FileCredentials> parse_file_credentials(std::string_view status) {
    const Error broken(ErrorCode::protocol, "the status of a process is not understood");
    const auto process = words_of(status, "Tgid");
    const auto uids = words_of(status, "Uid");
    const auto gids = words_of(status, "Gid");
    const auto groups = words_of(status, "Groups");
    const auto capabilities = words_of(status, "CapEff");
    if (!process || !uids || !gids || !groups || !capabilities) return broken;
    // The last of four is the one for files.
    if (process->size() != 1 || uids->size() != 4 || gids->size() != 4 ||
        capabilities->size() != 1) {
        return broken;
    }
    FileCredentials out;
    if (!read_number(process->front(), out.process) || !read_number(uids->back(), out.uid) ||
        !read_number(gids->back(), out.gid) ||
        !read_number(capabilities->front(), out.capabilities, 16)) {
        return broken;
    }
    for (const std::string& word : *groups) {
        if (!read_number(word, out.groups.emplace_back())) return broken;
    }
    return out;
}

Caller::Rights::Rights(const FileCredentials& wanted) : wanted_(&wanted) {
    taken_ = set_groups(wanted.groups) && set_file_ids(wanted.uid, wanted.gid);
}

bool Caller::Rights::narrow() {
    CapabilitySets sets{};
    if (!get_capabilities(sets)) return false;
    for (std::size_t word = 0; word < sets.size(); ++word)
        sets[word].effective &= static_cast<std::uint32_t>(wanted_->capabilities >> (32 * word));
    return set_capabilities(sets);
}

Caller::Rights::~Rights() {
    CapabilitySets sets{};
    bool restored = get_capabilities(sets);
    for (auto& word : sets)
        word.effective = word.permitted;
    restored = restored && set_capabilities(sets) && set_file_ids(0, 0) && set_groups({});
    // A change of ids may open a process to others. One that is nobody's must not go on.
    if (!restored || ::prctl(PR_SET_DUMPABLE, 0) < 0) ::abort();
}

Outcome<Caller> Caller::of(pid_t thread) {
    Caller out;
    out.directory_ = "/proc/" + std::to_string(thread);
    auto status = read_file(out.directory_ + "/status");
    if (!status) return number(ESRCH);
    auto credentials = parse_file_credentials(*status);
    if (!credentials) return number(EPERM);
    out.credentials_ = std::move(*credentials);
    return out;
}

Outcome<void> Caller::look() {
    root_.reset(::open((directory_ + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    current_.reset(::open((directory_ + "/cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    memory_.reset(::open((directory_ + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    if (!root_ || !current_ || !memory_) return number(EPERM);
    in_own_root_ = same_directory(root_.get(), "/");
    return {};
}

Outcome<std::string> Caller::read_bytes(std::uint64_t address, std::size_t size) const {
    std::string out(size, '\0');
    const ssize_t got =
        size == 0 ? 0 : ::pread(memory_.get(), out.data(), size, static_cast<off_t>(address));
    if (got != static_cast<ssize_t>(size)) return number(EFAULT);
    return out;
}

Outcome<std::string> Caller::read_text(std::uint64_t address, std::size_t most) const {
    constexpr std::size_t kPage = 4096;
    std::string out;
    while (out.size() < most) {
        // Up to the end of a page: the next one may not be there.
        std::size_t size = kPage - (address + out.size()) % kPage;
        size = std::min(size, most - out.size());
        auto piece = read_bytes(address + out.size(), size);
        if (!piece) return piece.error();
        const std::size_t end = piece->find('\0');
        out += piece->substr(0, end);
        if (end != std::string::npos) return out;
    }
    return number(ENAMETOOLONG);
}

Outcome<UniqueFd> Caller::file(int descriptor) const {
    const std::string path = directory_ + "/fd/" + std::to_string(descriptor);
    UniqueFd out(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!out) return number(errno == ENOENT ? EBADF : errno);
    return out;
}

Outcome<UniqueFd> Caller::resolve(int directory, const std::string& path, bool follow) const {
    if (path.empty()) return number(ENOENT);
    if (const auto own = own_descriptor(path); own && follow) return file(*own);
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC | (follow ? 0U : O_NOFOLLOW);
    how.resolve = RESOLVE_NO_MAGICLINKS;
    UniqueFd given;
    int from = current_.get();
    if (path.front() == '/') {
        from = root_.get();
        if (!in_own_root_) how.resolve |= RESOLVE_IN_ROOT;
    } else {
        if (directory != AT_FDCWD) {
            auto opened = file(directory);
            if (!opened) return opened.error();
            given = std::move(*opened);
            from = given.get();
        }
        // Of a path that leads up or through an absolute link nothing is known there.
        if (!in_own_root_) how.resolve |= RESOLVE_BENEATH;
    }
    UniqueFd out(static_cast<int>(::syscall(SYS_openat2, from, path.c_str(), &how, sizeof how)));
    if (!out) return last_errno();
    return out;
}

}  // namespace opensandbox::runtime::native
