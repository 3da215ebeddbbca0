#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the built-in image takes from the host's /etc, and what it makes itself.
namespace opensandbox::image {

/// Names below /etc, files or whole directories, that programs in /usr need and that say nothing
/// secret about the host. A trailing "*" stands for any rest of the name.
std::span<const std::string_view> host_etc_selection();

/// Whether a file's content may leave the host: no private key, no URL with a password.
bool is_harmless(std::string_view content);

/// A file that is made, not copied. Paths are relative to the root.
struct GeneratedFile {
    std::string path;
    std::string content;
    unsigned mode = 0644;
};
/// passwd, group, shadow and gshadow with the standard system accounts and the user `sandbox`
/// (1000), whose shell is `shell`.
std::vector<GeneratedFile> generated_accounts(std::string_view shell);

/// An empty directory of the skeleton.
struct SkeletonDirectory {
    std::string_view path;
    unsigned mode;
    unsigned owner;  ///< uid and gid
};
std::span<const SkeletonDirectory> skeleton_directories();

}  // namespace opensandbox::image
