#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::image {

/// One thing of the host's that the skeleton takes, as it was when it was looked at.
struct HostSource {
    std::string path;  ///< relative to the host's root
    std::uint32_t mode = 0;
    std::uint64_t size = 0;
    std::string stamp;  ///< inode and times: another stamp, possibly another content
};

/// All of them, sorted, directories before what they hold.
struct HostSurvey {
    std::vector<HostSource> sources;
    std::string etc_stamp;  ///< of /etc itself, which shows new names

    /// Hex digest: equal as long as nothing that the skeleton takes was touched.
    [[nodiscard]] std::string fingerprint() const;
    /// Whether another survey could differ. Cheap: of the many links only their directories are
    /// looked at, for a link cannot change in place.
    [[nodiscard]] bool still_holds(const std::filesystem::path& host_root) const;
};

/// Passes over what is not world-readable or not root's. `unsupported` on a host whose /bin is not
/// in /usr.
Result<HostSurvey> survey_host(const std::filesystem::path& host_root);

/// A root directory made from the survey.
struct Skeleton {
    std::string hex;         ///< of its content: same files, same digest
    std::uint64_t size = 0;  ///< bytes in its files
};

/// Builds it in an empty directory.
Result<Skeleton> build_skeleton(const std::filesystem::path& host_root, const HostSurvey& survey,
                                const std::filesystem::path& into);

}  // namespace opensandbox::image
