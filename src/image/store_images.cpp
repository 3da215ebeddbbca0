#include "image/store_state.hpp"

#include <algorithm>

namespace opensandbox::image {

const std::filesystem::path& Store::directory() const {
    return state_->directory;
}

bool Store::has_layer(const std::string& hex) {
    auto known = state_->catalog();
    return known && (*known)->layers.contains(hex);
}

Result<ImageInfo> Store::add(const std::string& text, const Stager& stage) {
    auto reference = parse_reference(text);
    if (!reference) return reference.error();
    if (reference->is_host()) {
        return Error(ErrorCode::conflict, "image \"host\" is built in and cannot be replaced");
    }
    auto staging = Staging::create(state_->directory);
    if (!staging) return staging.error();
    return state_->take_in(*reference, *staging, stage);
}

Result<ImageDetails> Store::inspect(const std::string& text) {
    auto reference = parse_reference(text);
    if (!reference) return reference.error();
    if (reference->is_host()) {
        return Error(ErrorCode::unsupported,
                     "image \"host\" is built in: it is made of this host's files, not of layers");
    }
    auto known = state_->catalog();
    if (!known) return known.error();
    std::string key = (*known)->key_of(*reference);
    if (key.empty()) return unknown_image(*reference);
    const ImageRecord& image = (*known)->images.find(key)->second;
    ImageDetails details;
    details.info = state_->describe(**known, key);
    details.config = image.config;
    for (const std::string& hex : image.layers) {
        LayerInfo layer;
        layer.diff_id = hex;
        layer.size = (*known)->layers.find(hex)->second.size;
        layer.path = state_->layer(hex);
        details.layers.push_back(std::move(layer));
    }
    auto documents = state_->documents.read(image.digest);
    if (!documents) return documents.error();
    details.documents = std::move(*documents);
    return details;
}

Result<PruneReport> Store::prune(const std::function<bool(const std::string& digest)>& in_use,
                                 bool all) {
    auto before = state_->catalog();
    if (!before) return before.error();
    PruneReport report;
    for (const auto& [reference, image] : (*before)->images) {
        if (!all && !image.replaced) continue;
        auto removed = remove(reference, in_use);
        if (removed) {
            report.removed.push_back(reference);
        } else if (removed.error().code() != ErrorCode::conflict &&
                   removed.error().code() != ErrorCode::not_found) {
            return removed.error();
        }
    }
    auto after = state_->catalog();
    if (!after) return after.error();
    for (const auto& [hex, layer] : (*before)->layers) {
        if (!(*after)->layers.contains(hex)) report.freed += layer.size;
    }
    return report;
}

}  // namespace opensandbox::image
