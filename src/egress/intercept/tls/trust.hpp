#pragma once

#include "base/error.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::egress {

/// Reads a file of the sandbox's image by its absolute path, without leaving the image through
/// links; empty when it has none.
using ReadImageFile = std::function<std::optional<std::string>(std::string_view path)>;

/// What makes the programs of a sandbox trust an authority: files for a folder that all may read,
/// and variables that point to them. Clients replace their roots by what a variable names, so the
/// bundle holds the image's own roots as well.
struct TrustPackage {
    struct File {
        std::string name;
        std::string content;
    };
    std::vector<File> files;
    std::vector<std::pair<std::string, std::string>> environment;
    /// Where the image's roots were found; empty: it has none, and the bundle is the authority
    /// alone.
    std::string roots_from;
};

/// Where images keep their roots in one file, in the order of the contract (1.9), behind certifi's.
const std::vector<std::string>& image_bundle_paths();

/// `directory` is where the files will be seen in the sandbox. `extra_bundles` are tried before
/// image_bundle_paths() (certifi's, which lies where Python is installed). `invalid_argument` when
/// `authority_pem` is no certificate.
Result<TrustPackage> make_trust_package(const std::string& authority_pem, const ReadImageFile& read,
                                        const std::string& directory,
                                        const std::vector<std::string>& extra_bundles = {});

}  // namespace opensandbox::egress
