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

/// All of them, sorted, directories before what they hold. Passes over what is not world-readable
/// or not root's. `unsupported` on a host whose /bin is not in /usr.
Result<std::vector<HostSource>> survey_host(const std::filesystem::path& host_root);

/// Hex digest over the survey: equal as long as nothing that the skeleton takes was touched.
std::string fingerprint_of(const std::vector<HostSource>& sources);

/// A root directory made from the survey.
struct Skeleton {
    std::string hex;         ///< of its content: same files, same digest
    std::uint64_t size = 0;  ///< bytes in its files
};

/// Builds it in an empty directory.
Result<Skeleton> build_skeleton(const std::filesystem::path& host_root,
                                const std::vector<HostSource>& sources,
                                const std::filesystem::path& into);

}  // namespace opensandbox::image
