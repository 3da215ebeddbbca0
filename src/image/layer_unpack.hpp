#pragma once

#include "base/unique_fd.hpp"
#include "image/input_stream.hpp"
#include "image/layer.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::image {

/// A layer's blob and what must be true of it.
struct LayerBlobRules {
    std::string name;     ///< for errors
    std::string hex;      ///< of the blob's digest; empty when nothing vouches for it
    std::string diff_id;  ///< hex of the digest of the tar stream in it
};

/// Makes the directory of a layer and opens it.
Result<UniqueFd> make_layer_directory(const std::filesystem::path& path);

/// Decompresses and unpacks a blob into `<parent>/<diff id>`, which it makes. `invalid_argument`
/// when a digest is another one than the rules say; `cancelled` soon after `stop` asks for it,
/// however much a piece of the blob unpacks to.
Result<LayerRecord> unpack_blob(const LayerBlobRules& rules, InputStream& blob,
                                const std::filesystem::path& parent, ImportBudget& budget,
                                const std::stop_token& stop);

/// `invalid_argument`: `what` has another digest than it must.
Error wrong_digest(std::string_view what, const std::string& is, const std::string& must_be);

}  // namespace opensandbox::image
