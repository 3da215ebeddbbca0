#include "image/input_stream.hpp"

#include "base/sparse_file.hpp"
#include "image/archive_reader.hpp"
#include "image/gzip_input.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace opensandbox::image {
namespace {

/// Gives back the bytes that were read to look at them.
class ReplayedInput final : public InputStream {
  public:
    ReplayedInput(std::string head, InputStream& rest) : head_(std::move(head)), rest_(rest) {}
    Result<std::size_t> read(std::span<char> into) override {
        if (at_ == head_.size()) return rest_.read(into);
        std::size_t count = head_.copy(into.data(), into.size(), at_);
        at_ += count;
        return count;
    }

  private:
    std::string head_;
    std::size_t at_ = 0;
    InputStream& rest_;
};

class ZstdInput final : public InputStream {
  public:
    explicit ZstdInput(std::unique_ptr<InputStream> packed)
        : packed_(std::move(packed)), reader_(*packed_, ArchiveReader::Kind::zstd) {}

    Result<std::size_t> read(std::span<char> into) override {
        if (!started_) {
            started_ = true;
            auto entry = reader_.next();
            if (!entry) return entry.error();
            if (!*entry) ended_ = true;
            if (reader_.filters() > 1) {
                return Error(ErrorCode::invalid_argument, "the data is compressed more than once");
            }
        }
        if (ended_) return std::size_t{0};
        return reader_.read(into);
    }

  private:
    std::unique_ptr<InputStream> packed_;
    ArchiveReader reader_;
    bool started_ = false;
    bool ended_ = false;
};

struct Magic {
    std::string_view bytes;
    std::string_view name;
};

constexpr std::array kOtherCompressions{
    Magic{{"\xfd"
           "7zXZ\0",
           6},
          "xz"},
    Magic{"BZh", "bzip2"},
    Magic{"\x04\x22\x4d\x18", "lz4"},
    Magic{"LZIP", "lzip"},
    Magic{"PK\x03\x04", "zip"},
};

}  // namespace

Result<std::size_t> SourceInput::read(std::span<char> into) {
    auto count = source_(into);
    if (!count) return count;
    if (*count > into.size()) return Error(ErrorCode::internal, "the source overran its buffer");
    budget_.add_packed(*count);
    return count;
}

Result<std::size_t> FileInput::read(std::span<char> into) {
    for (;;) {
        ssize_t count = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset_));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return Error::from_errno(errno, "read the staged archive");
        offset_ += static_cast<std::uint64_t>(count);
        return static_cast<std::size_t>(count);
    }
}

Result<std::uint64_t> FileInput::skip(std::uint64_t bytes) {
    off_t end = ::lseek(fd_, 0, SEEK_END);
    if (end < 0) return Error::from_errno(errno, "seek in the staged archive");
    std::uint64_t left = static_cast<std::uint64_t>(end) - offset_;
    bytes = std::min(bytes, left);
    offset_ += bytes;
    return bytes;
}

Result<std::size_t> HashedInput::read(std::span<char> into) {
    auto count = from_.read(into);
    if (!count) return count;
    hash_.update(into.first(*count));
    bytes_ += *count;
    return count;
}

Result<std::size_t> MeteredInput::read(std::span<char> into) {
    auto count = from_.read(into);
    if (!count) return count;
    const std::uint64_t costly = costly_bytes(into.first(*count));
    if (auto ok = budget_.add_stream(stage_, *count, costly); !ok) return ok.error();
    return count;
}

Result<std::size_t> RecordedInput::read(std::span<char> into) {
    auto count = from_.read(into);
    if (!count || fd_ < 0) return count;
    if (*count == 0) {
        if (::ftruncate(fd_, static_cast<off_t>(size_)) == 0) return count;
        return Error::from_errno(errno, "set the size of the staged archive");
    }
    auto written = write_sparsely(fd_, into.first(*count), size_);
    if (!written) return written.error();
    size_ += *count;
    return count;
}

Result<std::size_t> StoppableInput::read(std::span<char> into) {
    if (stop_.stop_requested()) return Error(ErrorCode::cancelled, "the work was broken off");
    return from_.read(into);
}

Status drain(InputStream& stream) {
    std::vector<char> buffer(std::size_t{64} << 10);
    for (;;) {
        auto count = stream.read(buffer);
        if (!count) return count.error();
        if (*count == 0) return {};
    }
}

Result<std::unique_ptr<InputStream>> decompressed(InputStream& from) {
    std::array<char, 8> bytes;
    std::size_t length = 0;
    while (length < bytes.size()) {
        auto count = from.read(std::span(bytes).subspan(length));
        if (!count) return count.error();
        if (*count == 0) break;
        length += *count;
    }
    std::string_view head(bytes.data(), length);
    for (const Magic& magic : kOtherCompressions) {
        if (!head.starts_with(magic.bytes)) continue;
        return Error(ErrorCode::unsupported, "compressed with " + std::string(magic.name) +
                                                 ": only gzip and zstd are known");
    }
    auto replayed = std::make_unique<ReplayedInput>(std::string(head), from);
    if (head.starts_with("\x1f\x8b")) {
        return std::unique_ptr<InputStream>(std::make_unique<GzipInput>(std::move(replayed)));
    }
    bool skippable = length > 3 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18";
    if (skippable || head.starts_with("\x28\xb5\x2f\xfd")) {
        return std::unique_ptr<InputStream>(std::make_unique<ZstdInput>(std::move(replayed)));
    }
    return std::unique_ptr<InputStream>(std::move(replayed));
}

Status write_all(int fd, std::span<const char> bytes) {
    while (!bytes.empty()) {
        ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return Error::from_errno(errno, "write");
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace opensandbox::image
