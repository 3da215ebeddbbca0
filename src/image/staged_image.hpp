#pragma once

#include "image/catalog.hpp"
#include "image/manifest.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace opensandbox::image {

/// An image that is checked and unpacked but not yet part of the store.
struct StagedImage {
    ImageRecord image;
    std::map<std::string, LayerRecord> layers;  ///< those unpacked now, in `<staging>/<hex>`
    std::optional<ImageDocuments> documents;
};

/// A layer that a registry gave.
struct PulledLayer {
    std::string diff_id;  ///< hex
    std::string hex;      ///< of the blob's digest
    std::uint64_t size = 0;
    std::filesystem::path file;  ///< the blob; empty when the store had the layer
};

/// An image as it came from a registry: documents checked, blobs in files.
struct PulledImage {
    std::string digest;  ///< of the manifest
    ConfigDocument config;
    ImageDocuments documents;
    std::vector<PulledLayer> layers;  ///< lowest first
};

/// Unpacks the blobs below `directory`, each removed when it is done. Whatever rules an import must
/// keep hold here, too. `conflict` when a layer that needed no blob is gone by now: to be pulled
/// again. `cancelled` soon after `stop` asks for it. Blocks.
Result<StagedImage> stage_pulled(const PulledImage& pulled, const ImportLimits& limits,
                                 const std::filesystem::path& directory, const HasLayer& has_layer,
                                 const std::stop_token& stop);

}  // namespace opensandbox::image
