#pragma once

#include "image/directory_archive.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace opensandbox::image {

/// The tar stream of a layer, out of its directory as overlayfs keeps it: whiteout devices become
/// ".wh.x", opaque marks ".wh..wh..opq". Numeric ids, modes, times, hard links, `user.*` attributes
/// and file capabilities are kept. The same directory gives the same bytes,
/// wherever its files have holes. `cancelled` soon after `stop` asks for it. Blocks.
Status write_layer(const std::filesystem::path& directory, const ByteSink& sink,
                   std::stop_token stop = {});

/// A layer as registries keep it.
struct LayerBlob {
    std::string diff_id;     ///< hex of the digest of its tar stream
    std::string hex;         ///< of the digest of the blob
    std::uint64_t size = 0;  ///< bytes of the blob
};

/// Media type of what write_layer_blob() makes.
inline constexpr std::string_view kLayerMediaType = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Writes the stream, compressed with gzip, into the new file. `cancelled` soon after `stop` asks
/// for it. Blocks.
Result<LayerBlob> write_layer_blob(const std::filesystem::path& directory,
                                   const std::filesystem::path& file, std::stop_token stop = {});

}  // namespace opensandbox::image
