#pragma once

#include "image/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::image {

/// One layer of an image that is to be sent away.
struct SentLayer {
    std::string diff_id;  ///< hex
    std::string hex;      ///< of the blob's digest
    std::uint64_t size = 0;
    std::string media_type;
};

/// Config and manifest for these blobs.
struct Composition {
    std::string config;
    std::string manifest;
    std::string media_type;  ///< of the manifest
};

/// The blobs that the image came in, lowest first; empty when it did not come in blobs, or its
/// documents do not belong to its layers. Pure.
std::vector<SentLayer> original_blobs(const ImageDetails& image);

/// Documents for the image in these blobs, lowest first. With its original blobs they are its
/// original documents, so that its digest stays; else the original config with other diff ids, or
/// one made from what the store keeps. `invalid_argument` when the original one is broken. Pure.
Result<Composition> compose(const ImageDetails& image, const std::vector<SentLayer>& layers);

/// A blob that some registry gave for a layer.
struct KnownBlob {
    SentLayer layer;
    std::string source;  ///< "registry/repository"; empty when it came in an archive
};

/// For each layer of the image the blob that it came in, if any: from its own documents, else from
/// those of another image with that layer. Blocks.
std::vector<std::optional<KnownBlob>> find_known_blobs(Store& store, const ImageDetails& image);

}  // namespace opensandbox::image
