#include "opensandbox/bytes.hpp"

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/sparse_file.hpp"
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

/// Where what is written goes before it has its name.
struct Unfinished {
    UniqueFd fd;
    std::string temporary;  ///< empty for a file without a name, and when written in place
    bool in_place = false;
};

class DiskWriter : public FileWriter {
  public:
    DiskWriter(Unfinished file, std::string path)
        : file_(std::move(file)), path_(std::move(path)) {}
    ~DiskWriter() override {
        thread_.join();
        if (!file_.temporary.empty()) ::unlink(file_.temporary.c_str());
    }

    Awaitable<Status> write(std::string_view bytes) override {
        std::function<opensandbox::Status()> work = [this, bytes] { return write_now(bytes); };
        auto written = co_await net::run_blocking<opensandbox::Status>(thread_, std::move(work));
        if (!written) co_return to_public(written.error());
        co_return Status();
    }

    [[nodiscard]] int descriptor() const { return file_.fd.get(); }

    Status commit() override {
        if (file_.in_place) return {};
        if (written_ < size_ && ::ftruncate(file_.fd.get(), static_cast<off_t>(size_)) != 0)
            return errno_error("set the size of " + path_);
        if (file_.temporary.empty()) {
            // Only a name that is free can be given; the rename takes the place of what is there.
            const std::string name = path_ + ".part-" + new_hex_id();
            const std::string self = "/proc/self/fd/" + std::to_string(file_.fd.get());
            if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
                return errno_error("name the file beside " + path_);
            file_.temporary = name;
        }
        if (::rename(file_.temporary.c_str(), path_.c_str()) != 0)
            return errno_error("rename to " + path_);
        file_.temporary.clear();
        file_.in_place = true;
        return {};
    }

  private:
    opensandbox::Status write_now(std::string_view bytes) {
        if (!file_.in_place) {
            auto end = write_sparsely(file_.fd.get(), bytes, size_);
            if (!end) return end.error().within(path_);
            written_ = std::max(written_, *end);
            size_ += bytes.size();
            return {};
        }
        while (!bytes.empty()) {
            ssize_t count = ::write(file_.fd.get(), bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return opensandbox::Error::from_errno(errno, "write " + path_);
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
        return {};
    }

    Unfinished file_;
    std::string path_;
    std::uint64_t size_ = 0;     ///< of what came, long runs of zeros left out of the file
    std::uint64_t written_ = 0;  ///< where the last byte ends that is in the file
    asio::thread_pool thread_{1};
};

/// A file in the directory of `target`: one without a name where the file system knows such, so
/// that nothing stays of it however this program ends.
Result<Unfinished> open_beside(const std::filesystem::path& target) {
    Unfinished file;
    const std::filesystem::path parent = target.parent_path();
    const std::string directory = parent.empty() ? "." : parent.string();
    if (::access("/proc/self/fd", X_OK) == 0)
        file.fd.reset(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    if (file.fd) return file;
    file.temporary = target.string() + ".part-" + new_hex_id();
    file.fd.reset(::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.fd) return errno_error("create a file beside " + target.string());
    return file;
}

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
        Unfinished file;
        file.fd.reset(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file.fd) return errno_error("open " + path.string());
        file.in_place = true;
        return std::unique_ptr<FileWriter>(
            std::make_unique<DiskWriter>(std::move(file), path.string()));
    }
    // The final name of a symbolic link is its target: the link itself stays.
    std::error_code ignored;
    const auto target = exists ? std::filesystem::canonical(path, ignored) : path;
    auto file = open_beside(target);
    if (!file) return file.error();
    auto writer = std::make_unique<DiskWriter>(std::move(*file), target.string());
    if (exists && ::fchmod(writer->descriptor(), info.st_mode & 07777) != 0)
        return errno_error("set the mode of what replaces " + path.string());
    return std::unique_ptr<FileWriter>(std::move(writer));
}

}  // namespace opensandbox::sdk
