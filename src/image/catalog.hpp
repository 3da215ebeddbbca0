#pragma once

#include "image/layer.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::image {

/// One image as the store keeps it.
struct ImageRecord {
    std::string digest;
    Timestamp created_at{};
    std::vector<std::string> layers;  ///< hex of the diff ids, lowest first, as in the image
    ImageConfig config;
    bool replaced = false;  ///< its tag went to another image
};

/// Which references name which layers: the store's one index file (`index.json`), replaced whole.
class Catalog {
  public:
    /// An absent file is an empty catalog.
    static Result<Catalog> load(const std::filesystem::path& file);
    [[nodiscard]] Status save(const std::filesystem::path& file) const;

    std::map<std::string, ImageRecord, std::less<>> images;  ///< by canonical reference
    std::map<std::string, LayerRecord, std::less<>> layers;  ///< by hex of the diff id

    /// By name and tag, or the image of that name with that digest, whatever its tag.
    [[nodiscard]] const ImageRecord* find(const Reference& reference) const;
    /// The key under which `find` found it; empty when it did not.
    [[nodiscard]] std::string key_of(const Reference& reference) const;
    /// Names the image. What the name meant before stays under "name@sha256:…": sandboxes may
    /// still run on it.
    void assign(const Reference& reference, ImageRecord image);
    /// Of all images.
    [[nodiscard]] std::set<std::string> digests() const;
    /// Layers that no image names any more.
    [[nodiscard]] std::vector<std::string> unused_layers() const;
    /// Bytes of all its layers, each counted once.
    [[nodiscard]] std::uint64_t size_of(const ImageRecord& image) const;
    /// What overlayfs has to stack, uppermost first: a layer that comes twice counts where it is
    /// uppermost, empty layers and those below an opaque root do not count.
    [[nodiscard]] std::vector<std::string> effective_layers(const ImageRecord& image) const;
};

}  // namespace opensandbox::image
