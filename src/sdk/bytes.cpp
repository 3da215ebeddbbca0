#include "opensandbox/bytes.hpp"

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/unique_fd.hpp"
#include "net/task.hpp"
#include "sdk/transport.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::sdk {

namespace {

Error errno_error(std::string_view what) {
    return to_public(opensandbox::Error::from_errno(errno, what));
}

class MemoryReader : public ByteReader {
  public:
    explicit MemoryReader(std::string_view bytes) : bytes_(bytes) {}
    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        const std::size_t count = std::min(into.size(), bytes_.size());
        std::memcpy(into.data(), bytes_.data(), count);
        bytes_.remove_prefix(count);
        co_return count;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return bytes_.size(); }

  private:
    std::string_view bytes_;
};

constexpr std::size_t kReadAhead = 512 * 1024;

/// Disks may be slow: reads and writes run on a thread of their own, not on the event loop. Reads
/// are large, so that a thread is woken for each half megabyte and not for each network packet.
class DiskReader : public ByteReader {
  public:
    DiskReader(UniqueFd fd, std::string path, std::uint64_t size)
        : fd_(std::move(fd)), path_(std::move(path)), left_(size) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        if (offset_ == filled_) {
            std::function<opensandbox::Result<std::size_t>()> work = [this] { return fill(); };
            auto count = co_await net::run_blocking<opensandbox::Result<std::size_t>>(
                thread_, std::move(work));
            if (!count) co_return to_public(count.error());
            offset_ = 0;
            filled_ = *count;
        }
        const std::size_t count = std::min(into.size(), filled_ - offset_);
        std::memcpy(into.data(), buffer_.data() + offset_, count);
        offset_ += count;
        left_ -= std::min<std::uint64_t>(left_, count);
        co_return count;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return left_; }

  private:
    opensandbox::Result<std::size_t> fill() {
        buffer_.resize(kReadAhead);
        for (;;) {
            const ssize_t count = ::read(fd_.get(), buffer_.data(), buffer_.size());
            if (count >= 0) return static_cast<std::size_t>(count);
            if (errno != EINTR) return opensandbox::Error::from_errno(errno, "read " + path_);
        }
    }

    UniqueFd fd_;
    std::string path_;
    std::uint64_t left_;
    std::string buffer_;
    std::size_t offset_ = 0;
    std::size_t filled_ = 0;
    asio::thread_pool thread_{1};  ///< last: joined before what it uses goes away
};

class DiskWriter : public FileWriter {
  public:
    DiskWriter(UniqueFd fd, std::string path, std::string temporary)
        : fd_(std::move(fd)), path_(std::move(path)), temporary_(std::move(temporary)) {}
    ~DiskWriter() override {
        thread_.join();
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }

    Awaitable<Status> write(std::string_view bytes) override {
        std::function<opensandbox::Status()> work = [this, bytes] { return write_now(bytes); };
        auto written = co_await net::run_blocking<opensandbox::Status>(thread_, std::move(work));
        if (!written) co_return to_public(written.error());
        co_return Status();
    }

    Status commit() override {
        if (temporary_.empty()) return {};
        if (::rename(temporary_.c_str(), path_.c_str()) != 0)
            return errno_error("rename to " + path_);
        temporary_.clear();
        return {};
    }

  private:
    opensandbox::Status write_now(std::string_view bytes) {
        while (!bytes.empty()) {
            ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return opensandbox::Error::from_errno(errno, "write " + path_);
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
        return {};
    }

    UniqueFd fd_;
    std::string path_;
    std::string temporary_;  ///< empty when written in place, and after commit()
    asio::thread_pool thread_{1};
};

}  // namespace

std::unique_ptr<ByteReader> read_bytes(std::string_view bytes) {
    return std::make_unique<MemoryReader>(bytes);
}

Result<std::unique_ptr<ByteReader>> read_file(const std::filesystem::path& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return errno_error("open " + path.string());
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return errno_error("stat " + path.string());
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::invalid_argument, path.string() + " is not a regular file");
    }
    return std::unique_ptr<ByteReader>(std::make_unique<DiskReader>(
        std::move(fd), path.string(), static_cast<std::uint64_t>(info.st_size)));
}

Result<std::unique_ptr<FileWriter>> FileWriter::create(const std::filesystem::path& path) {
    struct stat info{};
    const bool exists = ::stat(path.c_str(), &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        return Error(ErrorCode::invalid_argument, path.string() + " is a directory");
    }
    if (exists && !S_ISREG(info.st_mode)) {  // a device or pipe cannot be replaced, only written
        UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!fd) return errno_error("open " + path.string());
        return std::unique_ptr<FileWriter>(
            std::make_unique<DiskWriter>(std::move(fd), path.string(), std::string()));
    }
    // The final name of a symbolic link is its target: the link itself stays.
    std::error_code ignored;
    const auto target = exists ? std::filesystem::canonical(path, ignored) : path;
    std::string temporary = target.string() + ".part-" + new_hex_id();
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return errno_error("create a file beside " + path.string());
    if (exists && ::fchmod(fd.get(), info.st_mode & 07777) != 0) {
        const Error failure = errno_error("set the mode of " + temporary);
        ::unlink(temporary.c_str());
        return failure;
    }
    return std::unique_ptr<FileWriter>(
        std::make_unique<DiskWriter>(std::move(fd), target.string(), std::move(temporary)));
}

}  // namespace opensandbox::sdk
