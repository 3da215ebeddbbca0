#include "image/composition.hpp"

#include "base/digest.hpp"
#include "image/manifest.hpp"
#include "json/document.hpp"

#include <algorithm>

namespace opensandbox::image {
namespace {

constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kConfigType = "application/vnd.oci.image.config.v1+json";

json::object run_config(const ImageConfig& config) {
    json::object object;
    json::array env;
    for (const auto& [name, value] : config.env)
        env.emplace_back(name + "=" + value);
    object["Env"] = std::move(env);
    if (!config.user.empty()) object["User"] = config.user;
    if (!config.working_directory.empty()) object["WorkingDir"] = config.working_directory;
    if (!config.entrypoint.empty()) object["Entrypoint"] = json::string_array(config.entrypoint);
    if (!config.cmd.empty()) object["Cmd"] = json::string_array(config.cmd);
    json::object labels, ports;
    for (const auto& [name, value] : config.labels)
        labels[name] = value;
    for (const std::string& port : config.exposed_ports)
        ports[port] = json::object();
    if (!labels.empty()) object["Labels"] = std::move(labels);
    if (!ports.empty()) object["ExposedPorts"] = std::move(ports);
    return object;
}

json::object descriptor(std::string_view media_type, std::string_view hex, std::uint64_t size) {
    json::object object;
    object["mediaType"] = media_type;
    object["digest"] = "sha256:" + std::string(hex);
    object["size"] = size;
    return object;
}

/// All that the original says, such as its history, and our run configuration over it.
Result<json::object> base_config(const ImageDetails& image) {
    json::object config;
    if (image.documents) {
        auto original = json::parse(image.documents->config);
        if (!original) return original.error().within("config");
        if (original->is_object()) return std::move(original->get_object());
    }
    config["created"] = to_rfc3339(image.info.created_at);
    config["architecture"] = machine_architecture();
    config["os"] = "linux";
    config["config"] = run_config(image.config);
    return config;
}

bool same_blobs(const std::vector<SentLayer>& a, const std::vector<SentLayer>& b) {
    return std::ranges::equal(a, b, [](const SentLayer& x, const SentLayer& y) {
        return x.hex == y.hex && x.diff_id == y.diff_id;
    });
}

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

std::vector<SentLayer> original_blobs(const ImageDetails& image) {
    if (!image.documents) return {};
    auto manifest = parse_manifest(image.documents->manifest);
    auto config = parse_config(image.documents->config);
    if (!manifest || !config) return {};
    std::size_t count = image.layers.size();
    if (manifest->layers.size() != count || config->diff_ids.size() != count) return {};
    std::vector<SentLayer> blobs;
    for (std::size_t i = 0; i < count; ++i) {
        if (config->diff_ids[i] != image.layers[i].diff_id) return {};
        SentLayer layer;
        layer.diff_id = config->diff_ids[i];
        layer.hex = manifest->layers[i].hex;
        layer.size = manifest->layers[i].size;
        layer.media_type = manifest->layers[i].media_type;
        blobs.push_back(std::move(layer));
    }
    return blobs;
}

Result<Composition> compose(const ImageDetails& image, const std::vector<SentLayer>& layers) {
    Composition made;
    if (image.documents && same_blobs(layers, original_blobs(image))) {
        made.config = image.documents->config;
        made.manifest = image.documents->manifest;
        made.media_type = image.documents->media_type;
        if (made.media_type.empty()) made.media_type = kManifestType;
        return made;
    }
    auto config = base_config(image);
    if (!config) return config.error();
    json::array diff_ids;
    for (const SentLayer& layer : layers)
        diff_ids.emplace_back("sha256:" + layer.diff_id);
    (*config)["rootfs"] = json::object{{"type", "layers"}, {"diff_ids", std::move(diff_ids)}};
    made.config = json::serialize(*config);
    json::object manifest;
    manifest["schemaVersion"] = 2;
    manifest["mediaType"] = kManifestType;
    manifest["config"] = descriptor(kConfigType, sha256_hex(made.config), made.config.size());
    json::array blobs;
    for (const SentLayer& layer : layers) {
        blobs.emplace_back(descriptor(layer.media_type, layer.hex, layer.size));
    }
    manifest["layers"] = std::move(blobs);
    made.manifest = json::serialize(manifest);
    made.media_type = kManifestType;
    return made;
}

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
