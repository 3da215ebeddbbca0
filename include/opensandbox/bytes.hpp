#pragma once

#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// Where an upload's bytes come from. Read piece by piece, as fast as the server takes them.
class ByteReader {
  public:
    virtual ~ByteReader() = default;
    /// At least one byte; 0 at the end.
    virtual boost::asio::awaitable<Result<std::size_t>> read_some(std::span<char> into) = 0;
    /// Exact count of bytes still to come, when known.
    [[nodiscard]] virtual std::optional<std::uint64_t> size() const = 0;
};

/// Where a download's bytes go. While write() waits, nothing more is fetched.
class ByteWriter {
  public:
    virtual ~ByteWriter() = default;
    virtual boost::asio::awaitable<Status> write(std::string_view bytes) = 0;
};

/// Reads a regular file. `not_found` or `io` naming the path.
Result<std::unique_ptr<ByteReader>> read_file(const std::filesystem::path& path);

/// Writes beside `path` and renames over it at commit(), so that a broken download leaves the old
/// file as it was. Where the file system can, what is not yet whole has no name: nothing of it
/// stays even when the program is killed.
class FileWriter : public ByteWriter {
  public:
    static Result<std::unique_ptr<FileWriter>> create(const std::filesystem::path& path);
    virtual Status commit() = 0;
};

/// Bytes in memory; borrowed.
std::unique_ptr<ByteReader> read_bytes(std::string_view bytes);

/// Called after each piece with the bytes moved so far and the total, 0 when unknown.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace opensandbox::sdk
