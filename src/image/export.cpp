#include "image/export.hpp"

#include "base/digest.hpp"
#include "image/composition.hpp"
#include "image/layer_writer.hpp"
#include "json/document.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <map>

namespace opensandbox::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kLayoutVersion = R"({"imageLayoutVersion":"1.0.0"})";

Status make_directories(const fs::path& path) {
    std::error_code failure;
    fs::create_directories(path, failure);
    if (failure) return Error::from_errno(failure.value(), "make " + path.string());
    return {};
}

/// Writes each layer once into `blobs`, under its digest.
Result<std::vector<SentLayer>> pack_layers(const ImageDetails& image, const fs::path& blobs,
                                           const std::stop_token& stop) {
    std::map<std::string, SentLayer> packed;
    std::vector<SentLayer> layers;
    for (const LayerInfo& layer : image.layers) {
        if (auto known = packed.find(layer.diff_id); known != packed.end()) {
            layers.push_back(known->second);
            continue;
        }
        fs::path file = blobs / "unfinished";
        auto blob = write_layer_blob(layer.path, file, stop);
        if (!blob) return blob.error().within("layer sha256:" + layer.diff_id);
        std::error_code failure;
        fs::rename(file, blobs / blob->hex, failure);
        if (failure) return Error::from_errno(failure.value(), "rename " + file.string());
        SentLayer sent;
        sent.diff_id = blob->diff_id;
        sent.hex = blob->hex;
        sent.size = blob->size;
        sent.media_type = kLayerMediaType;
        packed.emplace(layer.diff_id, sent);
        layers.push_back(std::move(sent));
    }
    return layers;
}

std::string index_of(const Composition& made, const std::string& reference) {
    json::object manifest;
    manifest["mediaType"] = made.media_type;
    manifest["digest"] = "sha256:" + sha256_hex(made.manifest);
    manifest["size"] = made.manifest.size();
    json::object names;
    names["io.containerd.image.name"] = reference;
    // By digest it has no tag.
    std::size_t colon = reference.rfind(':');
    if (reference.find('@') == std::string::npos && colon != std::string::npos) {
        names["org.opencontainers.image.ref.name"] = reference.substr(colon + 1);
    }
    manifest["annotations"] = std::move(names);
    json::object index;
    index["schemaVersion"] = 2;
    index["mediaType"] = "application/vnd.oci.image.index.v1+json";
    json::array manifests;
    manifests.emplace_back(std::move(manifest));
    index["manifests"] = std::move(manifests);
    return json::serialize(index);
}

}  // namespace

Result<std::unique_ptr<ExportedImage>> ExportedImage::make(Store& store,
                                                           const std::string& reference,
                                                           std::stop_token stop) {
    auto details = store.inspect(reference);
    if (!details) return details.error();
    auto staging = Staging::create(store.directory());
    if (!staging) return staging.error();
    std::unique_ptr<ExportedImage> made(new ExportedImage(std::move(*staging)));
    fs::path layout = made->staging_.path() / "layout";
    fs::path blobs = layout / "blobs" / "sha256";
    if (auto ok = make_directories(blobs); !ok) return ok.error();
    auto layers = pack_layers(*details, blobs, stop);
    if (!layers) return layers.error();
    auto composed = compose(*details, *layers);
    if (!composed) return composed.error();
    const std::string index = index_of(*composed, details->info.reference);
    for (const auto& [file, content] :
         {std::pair<fs::path, std::string_view>(blobs / sha256_hex(composed->config),
                                                composed->config),
          std::pair<fs::path, std::string_view>(blobs / sha256_hex(composed->manifest),
                                                composed->manifest),
          std::pair<fs::path, std::string_view>(layout / "index.json", index),
          std::pair<fs::path, std::string_view>(layout / "oci-layout", kLayoutVersion)}) {
        if (auto ok = write_file_atomically(file, content); !ok) return ok.error();
    }
    auto archive = DirectoryArchive::open(layout, DirectoryArchive::Form::plain, stop);
    if (!archive) return archive.error();
    made->archive_ = std::make_unique<DirectoryArchive>(std::move(*archive));
    return made;
}

}  // namespace opensandbox::image
