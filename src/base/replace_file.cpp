#include "base/replace_file.hpp"

#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"

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

Status replace_file(const std::filesystem::path& path, std::string_view content,
                    const std::filesystem::path& aside) {
    const UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return failed(errno, "create", aside);
    ScopeExit remove([&] { ::unlink(aside.c_str()); });
    while (!content.empty()) {
        const ssize_t written = ::write(fd.get(), content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return failed(written < 0 ? errno : ENOSPC, "write", aside);
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::rename(aside.c_str(), path.c_str()) < 0) return failed(errno, "replace", path);
    remove.dismiss();
    return {};
}

Status replace_file(const std::filesystem::path& path, std::string_view content) {
    std::filesystem::path aside = path;
    aside += ".new";
    return replace_file(path, content, aside);
}

}  // namespace opensandbox
