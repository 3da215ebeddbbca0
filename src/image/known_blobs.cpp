#include "image/known_blobs.hpp"

#include <algorithm>

namespace opensandbox::image {
namespace {

void learn(const ImageDetails& from, const ImageDetails& image,
           std::vector<std::optional<KnownBlob>>& known) {
    for (const SentLayer& layer : original_blobs(from)) {
        for (std::size_t i = 0; i < known.size(); ++i) {
            if (known[i] || image.layers[i].diff_id != layer.diff_id) continue;
            known[i].emplace();
            known[i]->layer = layer;
            known[i]->source = from.documents->source;
        }
    }
}

}  // namespace

std::vector<std::optional<KnownBlob>> find_known_blobs(Store& store, const ImageDetails& image) {
    std::vector<std::optional<KnownBlob>> known(image.layers.size());
    auto complete = [&] {
        return std::ranges::all_of(known, [](const auto& blob) { return blob.has_value(); });
    };
    learn(image, image, known);
    if (complete()) return known;
    auto images = store.list();
    if (!images) return known;
    for (const ImageInfo& info : *images) {
        if (info.built_in || complete()) continue;
        if (auto other = store.inspect(info.reference)) learn(*other, image, known);
    }
    return known;
}

}  // namespace opensandbox::image
