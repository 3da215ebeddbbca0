#include "sdk/stdio/standard_streams.hpp"

#include "base/error.hpp"
#include "sdk/transport.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::sdk {

namespace {

/// Waits for readiness and reads once: the descriptor itself stays blocking, since it is shared
/// with the shell that started us.
class PipeReader : public ByteReader {
  public:
    PipeReader(asio::any_io_executor executor, int fd) : input_(executor, fd) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        boost::system::error_code failed;
        co_await input_.async_wait(asio::posix::stream_descriptor::wait_read,
                                   asio::redirect_error(asio::use_awaitable, failed));
        if (failed) {
            co_return Error(ErrorCode::io, "standard input: " + failed.message());
        }
        const ssize_t count = ::read(input_.native_handle(), into.data(), into.size());
        if (count < 0) {
            co_return to_public(opensandbox::Error::from_errno(errno, "read standard input"));
        }
        co_return static_cast<std::size_t>(count);
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return std::nullopt; }

  private:
    asio::posix::stream_descriptor input_;
};

}  // namespace

Result<std::unique_ptr<ByteReader>> open_standard_input(asio::any_io_executor executor) {
    struct stat info{};
    if (::fstat(STDIN_FILENO, &info) != 0) {
        return to_public(opensandbox::Error::from_errno(errno, "standard input"));
    }
    // Files are always ready, as far as epoll cares: it refuses them.
    if (S_ISREG(info.st_mode)) return read_file("/dev/stdin");
    const int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return to_public(opensandbox::Error::from_errno(errno, "standard input"));
    if (S_ISCHR(info.st_mode) && ::isatty(fd) == 0) {  // /dev/null and the like
        ::close(fd);
        return read_bytes("");
    }
    return std::unique_ptr<ByteReader>(std::make_unique<PipeReader>(std::move(executor), fd));
}

StandardOutputWriter::StandardOutputWriter(asio::any_io_executor executor)
    : queue_(std::move(executor)) {}

Awaitable<Status> StandardOutputWriter::write(std::string_view bytes) {
    queue_.append(STDOUT_FILENO, bytes);
    co_await queue_.make_room();
    if (queue_.reader_gone()) {
        co_return Error(ErrorCode::cancelled, "standard output was closed");
    }
    co_return Status();
}

}  // namespace opensandbox::sdk
