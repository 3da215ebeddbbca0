#pragma once

#include "base/digest.hpp"
#include "image/budget.hpp"
#include "image/store.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace opensandbox::image {

/// Bytes that are pulled. Stages of an import are streams over streams.
class InputStream {
  public:
    virtual ~InputStream() = default;
    /// 0 only at the end.
    virtual Result<std::size_t> read(std::span<char> into) = 0;
    /// Passes over up to `bytes` without reading them; 0 from a stream that cannot.
    virtual Result<std::uint64_t> skip(std::uint64_t /*bytes*/) { return std::uint64_t{0}; }
};

/// A caller's ByteSource; counts what comes as packed bytes.
class SourceInput final : public InputStream {
  public:
    SourceInput(const ByteSource& source, ImportBudget& budget)
        : source_(source), budget_(budget) {}
    Result<std::size_t> read(std::span<char> into) override;

  private:
    const ByteSource& source_;
    ImportBudget& budget_;
};

/// An open file from its first byte on. The descriptor is borrowed.
class FileInput final : public InputStream {
  public:
    explicit FileInput(int fd) : fd_(fd) {}
    Result<std::size_t> read(std::span<char> into) override;
    Result<std::uint64_t> skip(std::uint64_t bytes) override;

  private:
    int fd_;
    std::uint64_t offset_ = 0;
};

/// Hashes and counts what passes.
class HashedInput final : public InputStream {
  public:
    explicit HashedInput(InputStream& from) : from_(from) {}
    Result<std::size_t> read(std::span<char> into) override;
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Hex digits; call once, at the end.
    [[nodiscard]] std::string finish() { return hash_.finish(); }

  private:
    InputStream& from_;
    Sha256 hash_;
    std::uint64_t bytes_ = 0;
};

/// Reports what passes to the budget and stops when that is used up.
class MeteredInput final : public InputStream {
  public:
    MeteredInput(InputStream& from, ImportBudget& budget, ImportBudget::Stage stage)
        : from_(from), budget_(budget), stage_(stage) {}
    Result<std::size_t> read(std::span<char> into) override;

  private:
    InputStream& from_;
    ImportBudget& budget_;
    ImportBudget::Stage stage_;
};

/// Ends with `cancelled` when the token asks to stop.
class StoppableInput final : public InputStream {
  public:
    StoppableInput(InputStream& from, std::stop_token stop) : from_(from), stop_(std::move(stop)) {}
    Result<std::size_t> read(std::span<char> into) override;
    Result<std::uint64_t> skip(std::uint64_t bytes) override { return from_.skip(bytes); }

  private:
    InputStream& from_;
    std::stop_token stop_;
};

/// Keeps a copy of what passes in a new file, until told to stop. Long runs of zeros become holes.
class RecordedInput final : public InputStream {
  public:
    RecordedInput(InputStream& from, int fd) : from_(from), fd_(fd) {}
    Result<std::size_t> read(std::span<char> into) override;
    void stop() { fd_ = -1; }

  private:
    InputStream& from_;
    int fd_;
    std::uint64_t size_ = 0;
};

/// Reads to the end, so that hashes and checksums cover everything.
Status drain(InputStream& stream);

/// `from` itself, or decompressed when its first bytes are those of gzip or zstd. Other known
/// compressions are `unsupported`. What was compressed twice is not decompressed twice.
Result<std::unique_ptr<InputStream>> decompressed(InputStream& from);

/// Writes all bytes at the file's position.
Status write_all(int fd, std::span<const char> bytes);

}  // namespace opensandbox::image
