#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>

namespace opensandbox::image {

/// A directory tree as a tar stream (pax), for `image import DIRECTORY`: a root file system or an
/// OCI image layout. Numeric ids, modes, times, hard links, `user.*` attributes and file
/// capabilities are kept. Symbolic links are archived, never followed; sockets, device nodes and
/// what is mounted below the directory are left out (the empty mount point stays). Holes of files
/// are kept, but in layers. An archive that is not read to its end costs nothing when it goes.
class DirectoryArchive {
  public:
    enum class Form : std::uint8_t {
        plain,  ///< the tree as it is
        layer,  ///< an overlay layer: its whiteouts and opaque marks as OCI images write them, and
                ///< the directory itself first, for its mode and owner
    };

    /// `not_found`, or `invalid_argument` when it is not a directory.
    static Result<DirectoryArchive> open(const std::filesystem::path& directory,
                                         Form form = Form::plain, std::stop_token stop = {});
    /// One file, or a directory with itself as the first entry. Links at the end of `path` are
    /// followed. A file is called `name`, or as its path says when that is empty; the entries of a
    /// directory count from it ("./x"). `invalid_argument` for devices and the like.
    static Result<DirectoryArchive> open_entry(const std::filesystem::path& path,
                                               const std::string& name, std::stop_token stop = {});
    DirectoryArchive(DirectoryArchive&&) noexcept;
    DirectoryArchive& operator=(DirectoryArchive&&) noexcept;
    ~DirectoryArchive();

    /// The next bytes; 0 at the end. Blocks on the disk. An error is final: the tree changed while
    /// it was read, a file cannot be read, or (`cancelled`) the token that it was opened with asks
    /// to stop.
    Result<std::size_t> read(std::span<char> into);

  private:
    struct State;
    explicit DirectoryArchive(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

using ByteSink = std::function<Status(std::span<const char>)>;

/// The whole stream, piece by piece. Ends with the sink's first error.
Status write_archive(const std::filesystem::path& directory, const ByteSink& sink,
                     DirectoryArchive::Form form = DirectoryArchive::Form::plain,
                     std::stop_token stop = {});

}  // namespace opensandbox::image
