#include "store/state_lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <string>

namespace opensandbox::store {

Result<StateLock> StateLock::acquire(const std::filesystem::path& directory) {
    std::error_code ec;
    bool made = std::filesystem::create_directories(directory, ec);
    if (ec)
        return Error(ErrorCode::io, "state directory " + directory.string() + ": " + ec.message());
    if (made && ::chmod(directory.c_str(), 0700) != 0) {
        return Error::from_errno(errno, "state directory " + directory.string());
    }
    auto path = directory / "server.lock";
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return Error::from_errno(errno, "open " + path.string());
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return Error::from_errno(errno, "lock " + path.string());
        return Error(ErrorCode::conflict, "another server holds the state directory " +
                                              directory.string() +
                                              "; stop it or give this one its own --state-dir");
    }
    return StateLock(std::move(file));
}

}  // namespace opensandbox::store
