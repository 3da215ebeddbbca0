#include "base/replace_file.hpp"

#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox {

namespace {

Status failed(int number, const char* what, const std::filesystem::path& path) {
    return Error::from_errno(number, std::string(what) + " " + path.string());
}

}  // namespace

Status overwrite_file(const std::filesystem::path& path, std::string_view content) {
    // What is emptied first some file systems write out as soon as it is closed.
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return failed(errno, "create", path);
    ScopeExit remove([&] { ::unlink(path.c_str()); });
    const auto size = static_cast<off_t>(content.size());
    while (!content.empty()) {
        const ssize_t written = ::write(fd.get(), content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return failed(written < 0 ? errno : ENOSPC, "write", path);
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    struct stat info{};
    if (::fstat(fd.get(), &info) < 0) return failed(errno, "stat", path);
    if (info.st_size > size && ::ftruncate(fd.get(), size) < 0)
        return failed(errno, "truncate", path);
    remove.dismiss();
    return {};
}

Status replace_file(const std::filesystem::path& path, std::string_view content,
                    const std::filesystem::path& aside) {
    if (auto s = overwrite_file(aside, content); !s) return s;
    if (::rename(aside.c_str(), path.c_str()) == 0) return {};
    const int number = errno;
    ::unlink(aside.c_str());
    return failed(number, "replace", path);
}

Status replace_file(const std::filesystem::path& path, std::string_view content) {
    std::filesystem::path aside = path;
    aside += ".new";
    return replace_file(path, content, aside);
}

}  // namespace opensandbox
