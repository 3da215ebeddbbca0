#pragma once

#include "image/composition.hpp"

#include <optional>
#include <string>
#include <vector>

namespace opensandbox::image {

/// A blob that some registry gave for a layer.
struct KnownBlob {
    KnownBlob() = default;
    SentLayer layer;
    std::string source;  ///< "registry/repository"; empty when it came in an archive
};

/// For each layer of the image the blob that it came in, if any: from its own documents, else from
/// those of another image with that layer. Blocks.
std::vector<std::optional<KnownBlob>> find_known_blobs(Store& store, const ImageDetails& image);

}  // namespace opensandbox::image
