#pragma once

#include "image/catalog.hpp"

#include <map>
#include <optional>
#include <string>

namespace opensandbox::image {

/// An image that is checked and unpacked but not yet part of the store.
struct StagedImage {
    ImageRecord image;
    std::map<std::string, LayerRecord> layers;  ///< those unpacked now, in `<staging>/<hex>`
    std::optional<ImageDocuments> documents;
};

}  // namespace opensandbox::image
