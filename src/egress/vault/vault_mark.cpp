#include "egress/vault/vault_mark.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::egress {

Status mark_vault(const std::filesystem::path& file, bool held) {
    if (!held) {
        if (::unlink(file.c_str()) == 0 || errno == ENOENT) return {};
        return Error::from_errno(errno, "remove " + file.string());
    }
    constexpr mode_t kOwn = 0600;
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwn));
    return fd ? Status() : Status(Error::from_errno(errno, "make " + file.string()));
}

bool is_vault_marked(const std::filesystem::path& file) {
    return ::access(file.c_str(), F_OK) == 0;
}

}  // namespace opensandbox::egress
