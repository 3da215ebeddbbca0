#pragma once

#include "base/error.hpp"
#include "image/layer.hpp"

#include <filesystem>
#include <stop_token>
#include <string>

namespace opensandbox::image {

/// A layer that was made here and never was an archive.
struct MadeLayer {
    std::string hex;  ///< names it in the store
    LayerRecord record;
};

/// Reads a layer as overlayfs keeps it and names it by its content: names, owners, modes, times of
/// change, links, attributes that an image keeps, whiteouts, opaque marks and bytes, whatever their
/// order on the disk and wherever their holes are. Sockets do not count. The same content has the
/// same name; it is no digest of an archive, since there is none. Blocks. `too_large` when
/// directories are nested deeper than 2,000; `cancelled` soon after `stop` asks for it.
Result<MadeLayer> identify_layer(const std::filesystem::path& directory,
                                 const std::stop_token& stop = {});

}  // namespace opensandbox::image
