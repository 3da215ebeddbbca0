#pragma once

#include "base/error.hpp"
#include "image/catalog.hpp"
#include "image/store.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

/// Images made of other images: more layers on top, another config.
namespace opensandbox::image {

/// What is different in the config of the new image. What is absent stays as it is below.
struct ConfigChange {
    /// Over the variables below, by name.
    std::optional<std::vector<std::pair<std::string, std::string>>> env;
    std::optional<std::string> user;
    std::optional<std::string> working_directory;
    std::optional<std::vector<std::string>> entrypoint;
    std::optional<std::vector<std::string>> cmd;
    std::optional<std::map<std::string, std::string>> labels;
    std::optional<std::vector<std::string>> exposed_ports;
};

/// Writes one layer, as overlayfs reads it, to a directory that does not exist yet. Blocks.
using LayerSource = std::function<Status(const std::filesystem::path& to)>;

/// An image to be made.
struct Derivation {
    std::string base;                 ///< reference, or "sha256:…" of an image in the store
    std::vector<LayerSource> layers;  ///< on those of the base, lowest first
    ConfigChange change;
};

/// `invalid_argument` names the member: variables without name, NUL bytes, ports that are none, a
/// working directory that is not absolute, more text than a config may hold.
Status check_config_change(const ConfigChange& change);

ImageConfig apply(const ConfigChange& change, ImageConfig config);

/// The record of an image with these further layers (hex, lowest first). It keeps its digest when
/// nothing is different; else that of its config document, which names the layers, too.
/// `conflict` when there would be more layers than an image may have.
Result<ImageRecord> derive_record(const ImageRecord& base, const std::vector<std::string>& layers,
                                  const ConfigChange& change);

/// The image that `base` names. `conflict` for "host", `not_found`.
Result<const ImageRecord*> find_base(const Catalog& catalog, const std::string& base);

/// Layers that lie in a staging directory, each under its hex.
struct StagedLayers {
    std::vector<std::string> order;  ///< lowest first; those that change nothing are left out
    std::map<std::string, LayerRecord> records;
};

/// Has the layers written below `directory` and names them by their content. `cancelled` between
/// two of them, or while one is read, once `stop` asks for it.
Result<StagedLayers> stage_layers(const std::vector<LayerSource>& sources,
                                  const std::filesystem::path& directory,
                                  const std::stop_token& stop);

}  // namespace opensandbox::image
