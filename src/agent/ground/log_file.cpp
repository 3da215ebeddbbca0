#include "agent/ground/log_file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

UniqueFd open_log(const std::string& path) {
    return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

}  // namespace

Result<std::shared_ptr<LogFile>> LogFile::open(std::string path) {
    UniqueFd fd = open_log(path);
    if (!fd) return Error::from_errno(errno, "open log file " + path);
    return std::shared_ptr<LogFile>(new LogFile(std::move(path), std::move(fd)));
}

Status LogFile::rotate(std::uint64_t limit) {
    struct stat info{};
    if (::fstat(fd_.get(), &info) != 0) return Error::from_errno(errno, "stat " + path_);
    if (static_cast<std::uint64_t>(info.st_size) <= limit) return {};
    for (int i = kKept; i > 0; --i) {
        std::string from = i == 1 ? path_ : path_ + "." + std::to_string(i - 1);
        std::string to = path_ + "." + std::to_string(i);
        if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
            return Error::from_errno(errno, "rename " + from);
        }
    }
    UniqueFd next = open_log(path_);
    if (!next) return Error::from_errno(errno, "open log file " + path_);
    if (::dup3(next.get(), fd_.get(), O_CLOEXEC) < 0) return Error::from_errno(errno, "dup3");
    return {};
}

}  // namespace opensandbox::agent
