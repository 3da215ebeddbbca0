#pragma once

#include "image/directory_archive.hpp"
#include "image/staging.hpp"
#include "image/store.hpp"

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace opensandbox::image {

/// An image as a tar stream of an OCI layout, which `image import`, skopeo and podman read. Docker
/// reads it from version 25 on.
class ExportedImage {
  public:
    /// Packs the layers beside the store: they take room there until this is gone. `not_found`,
    /// `unsupported` for "host"; `cancelled`, also of read(), soon after `stop` asks for it.
    /// Blocks for as long as compressing takes.
    static Result<std::unique_ptr<ExportedImage>> make(Store& store, const std::string& reference,
                                                       std::stop_token stop);

    /// The next bytes; 0 at the end. Blocks on the disk.
    Result<std::size_t> read(std::span<char> into) { return archive_->read(into); }

  private:
    explicit ExportedImage(Staging staging) : staging_(std::move(staging)) {}

    Staging staging_;
    std::unique_ptr<DirectoryArchive> archive_;
};

}  // namespace opensandbox::image
