#pragma once

#include "agent/files/permission.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// New content for a path that appears there at once: written to a sibling and renamed over the
/// target, which keeps its mode and owner. Where that cannot be (a mount point, a file with several
/// names, a directory without write permission) the finished content is copied over the old one; a
/// device is written directly. A link is followed. Without commit() nothing of it remains.
class ReplacementFile {
  public:
    /// `make_parents` creates missing directories. `conflict` when the target is a directory.
    static Result<ReplacementFile> open(const std::string& path, bool make_parents);
    ReplacementFile(ReplacementFile&&) noexcept = default;
    ReplacementFile& operator=(ReplacementFile&&) = delete;
    ~ReplacementFile();

    /// Long runs of zeros become holes.
    Status write(std::string_view bytes);
    /// Gives it its permissions and its place.
    Status commit(const Permission& permission);

  private:
    ReplacementFile() = default;
    Status open_sibling();
    Status open_unnamed();
    Status copy_over_target();

    UniqueFd fd_;
    std::string target_;      ///< links resolved
    std::string sibling_;     ///< empty when there is none
    bool direct_ = false;     ///< `fd_` is the target itself
    bool overwrite_ = false;  ///< copied over the target in the end
    std::optional<PermissionIds> former_owner_;
    unsigned mode_ = 0;
    std::uint64_t size_ = 0;     ///< of what was written, holes included
    std::uint64_t written_ = 0;  ///< where the last byte ends that is no hole's
};

/// mkdir -p with 0777 and the umask.
Status make_directories(const std::string& path);

/// Writes all of it.
Status write_fully(int fd, std::string_view bytes, const std::string& path);

}  // namespace opensandbox::agent
