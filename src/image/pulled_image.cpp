#include "image/layer_unpack.hpp"
#include "image/staged_image.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::image {
namespace {

Result<LayerRecord> unpack(const PulledLayer& layer, const std::filesystem::path& directory,
                           ImportBudget& budget, const std::stop_token& stop) {
    LayerBlobRules rules;
    rules.name = "sha256:" + layer.hex;
    rules.hex = layer.hex;
    rules.diff_id = layer.diff_id;
    UniqueFd file(::open(layer.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return Error::from_errno(errno, "open " + layer.file.string());
    budget.add_packed(layer.size);
    FileInput blob(file.get());
    auto record = unpack_blob(rules, blob, directory, budget, stop);
    if (!record) return record.error().within("layer sha256:" + layer.hex);
    ::unlink(layer.file.c_str());
    return record;
}

}  // namespace

Result<StagedImage> stage_pulled(const PulledImage& pulled, const ImportLimits& limits,
                                 const std::filesystem::path& directory, const HasLayer& has_layer,
                                 const std::stop_token& stop) {
    ImportBudget budget(limits);
    StagedImage staged;
    staged.image.digest = pulled.digest;
    staged.image.created_at = now();
    staged.image.config = pulled.config.config;
    staged.documents = pulled.documents;
    for (const PulledLayer& layer : pulled.layers) {
        staged.image.layers.push_back(layer.diff_id);
        if (has_layer(layer.diff_id) || staged.layers.contains(layer.diff_id)) continue;
        std::error_code missing;
        if (layer.file.empty() || !std::filesystem::exists(layer.file, missing)) {
            return Error(ErrorCode::conflict,
                         "layer sha256:" + layer.diff_id + " was removed meanwhile");
        }
        auto record = unpack(layer, directory, budget, stop);
        if (!record) return record.error();
        staged.layers.emplace(layer.diff_id, *record);
    }
    return staged;
}

}  // namespace opensandbox::image
