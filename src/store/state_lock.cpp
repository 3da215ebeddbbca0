#include "store/state_lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <string>

namespace opensandbox::store {
namespace {

/// Empty and `held` set when another process holds it.
Result<UniqueFd> lock_file(const std::filesystem::path& path, bool& held) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return Error::from_errno(errno, "open " + path.string());
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno != EWOULDBLOCK) return Error::from_errno(errno, "lock " + path.string());
    held = true;
    return UniqueFd();
}

}  // namespace

Result<StateLock> StateLock::acquire(const std::filesystem::path& directory) {
    std::error_code ec;
    bool made = std::filesystem::create_directories(directory, ec);
    if (ec)
        return Error(ErrorCode::io, "state directory " + directory.string() + ": " + ec.message());
    if (made && ::chmod(directory.c_str(), 0700) != 0) {
        return Error::from_errno(errno, "state directory " + directory.string());
    }
    bool held = false;
    auto file = lock_file(directory / "server.lock", held);
    if (!file) return file.error();
    if (held) {
        return Error(ErrorCode::conflict, "another server holds the state directory " +
                                              directory.string() +
                                              "; stop it or give this one its own --state-dir");
    }
    return StateLock(std::move(file.value()));
}

Result<StateLock> StateLock::acquire_store(const std::filesystem::path& file) {
    std::error_code ec;
    auto real = std::filesystem::weakly_canonical(file, ec);
    if (ec) return Error(ErrorCode::io, "store " + file.string() + ": " + ec.message());
    bool held = false;
    auto lock = lock_file(real.string() + ".lock", held);
    if (!lock) return lock.error().within("store");
    if (held) {
        return Error(ErrorCode::conflict, "another server holds the store " + real.string() +
                                              "; stop it or give this one its own store.path");
    }
    return StateLock(std::move(lock.value()));
}

}  // namespace opensandbox::store
