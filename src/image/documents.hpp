#pragma once

#include "image/store.hpp"

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace opensandbox::image {

/// The documents of stored images, a file each, named by the image's digest.
class DocumentFiles {
  public:
    /// `store` is the directory of the store.
    explicit DocumentFiles(const std::filesystem::path& store) : directory_(store / "documents") {}

    [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
    /// Empty when there are none.
    [[nodiscard]] Result<std::optional<ImageDocuments>> read(const std::string& digest) const;
    /// Looks at one file's entry.
    [[nodiscard]] bool has(const std::string& digest) const;
    [[nodiscard]] Status write(const std::string& digest, const ImageDocuments& documents) const;
    /// Removes those of images that are not among `digests`.
    [[nodiscard]] Status keep_only(const std::set<std::string>& digests) const;

  private:
    [[nodiscard]] std::filesystem::path file(const std::string& digest) const;

    std::filesystem::path directory_;
};

}  // namespace opensandbox::image
