#include "base/log_file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::log {

Result<std::unique_ptr<RotatingFile>> RotatingFile::open(std::filesystem::path path,
                                                         std::int64_t max_bytes,
                                                         std::int64_t keep) {
    std::error_code failure;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
    std::unique_ptr<RotatingFile> file(new RotatingFile(std::move(path), max_bytes, keep));
    if (auto opened = file->reopen(); !opened) return opened.error();
    return file;
}

Status RotatingFile::reopen() {
    UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
    if (!file) return Error::from_errno(errno, "open the log " + path_.string());
    struct stat status{};
    size_ = ::fstat(file.get(), &status) == 0 ? status.st_size : 0;
    file_ = std::move(file);
    return {};
}

std::filesystem::path RotatingFile::numbered(std::int64_t number) const {
    return path_.string() + "." + std::to_string(number);
}

void RotatingFile::turn_over() {
    std::error_code ignored;
    if (keep_ == 0) std::filesystem::remove(path_, ignored);
    for (std::int64_t number = keep_; number > 0; --number) {
        auto from = number == 1 ? path_ : numbered(number - 1);
        std::filesystem::rename(from, numbered(number), ignored);
    }
    // Where that fails the old file goes on being written to.
    if (!reopen()) size_ = 0;
}

void RotatingFile::append(std::string_view line) {
    std::lock_guard lock(mutex_);
    auto length = static_cast<std::int64_t>(line.size());
    if (max_bytes_ > 0 && size_ > 0 && size_ + length > max_bytes_) turn_over();
    ssize_t written = ::write(file_.get(), line.data(), line.size());
    if (written > 0) size_ += written;
}

}  // namespace opensandbox::log
