#pragma once

#include "opensandbox/bytes.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::sdk {

class Transport;
struct Route;

enum class FileType : std::uint8_t { file, directory, symlink, other };
std::string_view to_string(FileType type);

/// One file or directory. Symbolic links are not followed.
struct FileInfo {
    std::string path;
    FileType type = FileType::file;
    std::uint64_t size = 0;
    std::chrono::sys_time<std::chrono::microseconds> modified_at{};
    std::chrono::sys_time<std::chrono::microseconds> created_at{};
    std::string owner;
    std::string group;
    std::uint32_t mode = 0;  ///< permission bits: 0644
};

/// What to set; empty members stay as they are.
struct Permissions {
    Permissions() = default;
    explicit Permissions(std::uint32_t bits) : mode(bits) {}
    std::optional<std::string> owner;
    std::optional<std::string> group;
    std::optional<std::uint32_t> mode;  ///< permission bits: 0644
};

/// Part of a file.
struct ByteRange {
    std::uint64_t begin = 0;
    std::optional<std::uint64_t> end;  ///< last byte, inclusive; empty: to the end of the file
};

/// The files of one sandbox. Paths are absolute, or relative to the agent's directory. Cheap to
/// copy.
class Files {
  public:
    /// A whole file; `too_large` past `limit` bytes.
    boost::asio::awaitable<Result<std::string>> read(std::string path,
                                                     std::size_t limit = 64 * 1024 * 1024) const;
    /// Makes parent directories; replaces what was there.
    boost::asio::awaitable<Status> write(std::string path, std::string content,
                                         Permissions permissions = Permissions(0644)) const;
    /// Streams `source` (borrowed) into a file.
    boost::asio::awaitable<Status> upload(std::string path, ByteReader& source,
                                          Permissions permissions = Permissions(0644),
                                          Progress progress = {}) const;
    /// Streams a file into `sink` (borrowed); returns its size.
    boost::asio::awaitable<Result<std::uint64_t>> download(
        std::string path, ByteWriter& sink, Progress progress = {},
        std::optional<ByteRange> range = std::nullopt) const;

    /// In the order asked for. `not_found` when one is missing.
    boost::asio::awaitable<Result<std::vector<FileInfo>>> info(
        std::vector<std::string> paths) const;
    /// Files below `path`, at any depth, whose base name matches the glob `pattern`.
    boost::asio::awaitable<Result<std::vector<FileInfo>>> search(std::string path,
                                                                 std::string pattern) const;
    /// Entries of a directory, `depth` levels deep, each before its children.
    boost::asio::awaitable<Result<std::vector<FileInfo>>> list(std::string path,
                                                               unsigned depth = 1) const;

    boost::asio::awaitable<Status> make_directories(
        std::vector<std::string> paths, Permissions permissions = Permissions(0755)) const;
    boost::asio::awaitable<Status> move(std::string from, std::string to) const;
    /// Files; what is missing is no error.
    boost::asio::awaitable<Status> remove(std::vector<std::string> paths) const;
    /// Directories with all that is in them; what is missing is no error.
    boost::asio::awaitable<Status> remove_directories(std::vector<std::string> paths) const;
    /// Unpacks a tar (plain, gzip or zstd) over what is in `directory`, which is made when missing.
    /// `permissions` take the place of the archive's; an owner without group brings its own. Takes
    /// as long as it takes. Agents of others do not have this (`not_found`).
    boost::asio::awaitable<Status> unpack(std::string directory, ByteReader& archive,
                                          Permissions permissions = {},
                                          Progress progress = {}) const;
    /// A file, or a directory with all that is in it, as a tar; `name` is what a single file is
    /// called in it (empty: as its path says).
    boost::asio::awaitable<Result<std::unique_ptr<ByteReader>>> pack(std::string path,
                                                                     std::string name = {}) const;
    boost::asio::awaitable<Status> set_permissions(std::string path, Permissions permissions) const;
    /// Replaces every occurrence; returns how many there were.
    boost::asio::awaitable<Result<std::uint64_t>> replace(std::string path, std::string old_text,
                                                          std::string new_text) const;

  private:
    friend class Sandbox;
    Files(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent);
    std::shared_ptr<Transport> transport_;
    std::shared_ptr<const Route> agent_;
};

}  // namespace opensandbox::sdk
