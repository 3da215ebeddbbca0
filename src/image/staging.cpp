#include "image/staging.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "base/scope_exit.hpp"
#include "image/input_stream.hpp"

#include <sys/file.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace opensandbox::image {
namespace fs = std::filesystem;

Result<StoreLock> StoreLock::acquire(const fs::path& store) {
    fs::path file = store / "lock";
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return Error::from_errno(errno, "open " + file.string());
    while (::flock(fd.get(), LOCK_EX) != 0) {
        if (errno != EINTR) return Error::from_errno(errno, "lock " + file.string());
    }
    return StoreLock(std::move(fd));
}

StoreLock::~StoreLock() {
    // Explicitly: a child that was forked meanwhile shares the descriptor and would hold the lock.
    if (fd_) ::flock(fd_.get(), LOCK_UN);
}

Result<Staging> Staging::create(const fs::path& store) {
    auto lock = StoreLock::acquire(store);
    if (!lock) return lock.error();
    fs::path path = store / "staging" / new_hex_id();
    if (::mkdir(path.c_str(), 0700) != 0) {
        return Error::from_errno(errno, "make " + path.string());
    }
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        int number = errno;
        ::rmdir(path.c_str());
        return Error::from_errno(number, "lock " + path.string());
    }
    return Staging(std::move(path), std::move(fd));
}

Staging::~Staging() {
    if (!fd_) return;
    if (auto status = remove_tree(path_); !status) {
        log::warn("a staging directory could not be removed",
                  {{"error", status.error().message()}});
    }
    ::flock(fd_.get(), LOCK_UN);
}

Status Staging::remove_abandoned(const fs::path& store) {
    std::error_code ec;
    std::vector<fs::path> found;
    for (fs::directory_iterator it(store / "staging", ec), end; !ec && it != end;
         it.increment(ec)) {
        found.push_back(it->path());
    }
    if (ec) return Error::from_errno(ec.value(), "list " + (store / "staging").string());
    for (const fs::path& path : found) {
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!fd) {
            ::unlink(path.c_str());
            continue;
        }
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
        if (auto status = remove_tree(path); !status) return status;
    }
    return {};
}

Status write_file_atomically(const fs::path& file, std::string_view content) {
    fs::path temporary = file;
    temporary += "." + new_hex_id();
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return Error::from_errno(errno, "make " + temporary.string());
    ScopeExit remove([&] { ::unlink(temporary.c_str()); });
    if (auto status = write_all(fd.get(), content); !status) {
        return status.error().within(temporary.string());
    }
    if (::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), file.c_str()) != 0) {
        int number = errno;
        return Error::from_errno(number, "replace " + file.string());
    }
    remove.dismiss();
    UniqueFd directory(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || ::fsync(directory.get()) != 0) {
        int number = errno;
        return Error::from_errno(number, "write " + file.parent_path().string());
    }
    return {};
}

Result<std::string> read_file(const fs::path& file) {
    UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return Error::from_errno(errno, "open " + file.string());
    std::string content;
    char buffer[16384];
    for (;;) {
        ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return Error::from_errno(errno, "read " + file.string());
        if (count == 0) return content;
        content.append(buffer, static_cast<std::size_t>(count));
    }
}

}  // namespace opensandbox::image
