#include "image/catalog.hpp"

#include "base/digest.hpp"
#include "image/staging.hpp"
#include "json/document.hpp"

#include <algorithm>

namespace opensandbox::image {
namespace {

constexpr std::int64_t kVersion = 1;

json::object to_json(const std::string& reference, const ImageRecord& image) {
    json::array env;
    for (const auto& [name, value] : image.config.env)
        env.emplace_back(json::array{name, value});
    json::object object;
    object["reference"] = reference;
    object["digest"] = image.digest;
    object["created_at"] = image.created_at.time_since_epoch().count();
    object["layers"] = json::string_array(image.layers);
    object["env"] = std::move(env);
    object["user"] = image.config.user;
    object["working_directory"] = image.config.working_directory;
    object["entrypoint"] = json::string_array(image.config.entrypoint);
    object["cmd"] = json::string_array(image.config.cmd);
    json::object labels;
    for (const auto& [name, value] : image.config.labels)
        labels[name] = value;
    object["labels"] = std::move(labels);
    object["exposed_ports"] = json::string_array(image.config.exposed_ports);
    if (image.replaced) object["replaced"] = true;
    return object;
}

/// Reads our own file: value_to and at() throw on anything that we did not write.
std::vector<std::string> strings(const json::value& value) {
    std::vector<std::string> texts;
    for (const json::value& text : value.as_array())
        texts.emplace_back(text.as_string());
    return texts;
}

ImageRecord image_from(const json::object& object) {
    ImageRecord image;
    image.digest = object.at("digest").as_string();
    image.created_at = Timestamp(std::chrono::microseconds(object.at("created_at").as_int64()));
    image.layers = strings(object.at("layers"));
    for (const json::value& pair : object.at("env").as_array()) {
        const json::array& both = pair.as_array();
        image.config.env.emplace_back(both.at(0).as_string(), both.at(1).as_string());
    }
    image.config.user = object.at("user").as_string();
    image.config.working_directory = object.at("working_directory").as_string();
    image.config.entrypoint = strings(object.at("entrypoint"));
    image.config.cmd = strings(object.at("cmd"));
    // Absent in what the first versions wrote.
    if (const json::value* labels = json::find(object, "labels")) {
        for (const auto& [name, value] : labels->as_object())
            image.config.labels.emplace(name, value.as_string());
    }
    if (const json::value* ports = json::find(object, "exposed_ports")) {
        image.config.exposed_ports = strings(*ports);
    }
    if (const json::value* replaced = json::find(object, "replaced")) {
        image.replaced = replaced->as_bool();
    }
    return image;
}

Catalog from_json(const json::object& document) {
    Catalog catalog;
    if (document.at("version").as_int64() != kVersion) throw std::out_of_range("version");
    for (const json::value& entry : document.at("images").as_array()) {
        const json::object& object = entry.as_object();
        catalog.images.emplace(object.at("reference").as_string(), image_from(object));
    }
    for (const auto& [hex, entry] : document.at("layers").as_object()) {
        const json::object& object = entry.as_object();
        if (!is_sha256_hex(hex)) throw std::out_of_range("layer");
        LayerRecord layer;
        layer.size = object.at("size").to_number<std::uint64_t>();
        layer.entries = object.at("entries").to_number<std::uint64_t>();
        layer.opaque = object.at("opaque").as_bool();
        catalog.layers.emplace(hex, layer);
    }
    for (const auto& [reference, image] : catalog.images) {
        for (const std::string& layer : image.layers) {
            if (!catalog.layers.contains(layer)) throw std::out_of_range("layer");
        }
    }
    return catalog;
}

}  // namespace

Result<Catalog> Catalog::load(const std::filesystem::path& file) {
    auto text = read_file(file);
    if (!text && text.error().code() == ErrorCode::not_found) return Catalog();
    if (!text) return text.error();
    auto document = json::parse(*text);
    if (!document) return document.error().within(file.string());
    try {
        return from_json(document->as_object());
    } catch (const std::exception& error) {
        return Error(ErrorCode::internal,
                     file.string() + ": not an index of this program: " + error.what());
    }
}

Status Catalog::save(const std::filesystem::path& file) const {
    json::array image_list;
    for (const auto& [reference, image] : images)
        image_list.emplace_back(to_json(reference, image));
    json::object layer_map;
    for (const auto& [hex, layer] : layers) {
        json::object object;
        object["size"] = layer.size;
        object["entries"] = layer.entries;
        object["opaque"] = layer.opaque;
        layer_map[hex] = std::move(object);
    }
    json::object document;
    document["version"] = kVersion;
    document["images"] = std::move(image_list);
    document["layers"] = std::move(layer_map);
    return write_file_atomically(file, json::serialize(document));
}

std::string Catalog::key_of(const Reference& reference) const {
    if (images.contains(reference.text())) return reference.text();
    if (reference.digest.empty()) return {};
    for (const auto& [key, image] : images) {
        if (image.digest == reference.digest && key.starts_with(reference.name + ":")) return key;
    }
    return {};
}

const ImageRecord* Catalog::find(const Reference& reference) const {
    auto found = images.find(key_of(reference));
    return found == images.end() ? nullptr : &found->second;
}

void Catalog::assign(const Reference& reference, ImageRecord image) {
    auto present = images.find(reference.text());
    if (present != images.end() && present->second.digest != image.digest) {
        Reference former = reference;
        former.tag.clear();
        former.digest = present->second.digest;
        present->second.replaced = true;
        images.insert_or_assign(former.text(), std::move(present->second));
    }
    Reference untagged = reference;
    untagged.tag.clear();
    untagged.digest = image.digest;
    images.erase(untagged.text());  // it has a tag again
    images.insert_or_assign(reference.text(), std::move(image));
}

std::set<std::string> Catalog::digests() const {
    std::set<std::string> found;
    for (const auto& [reference, image] : images)
        found.insert(image.digest);
    return found;
}

std::vector<std::string> Catalog::unused_layers() const {
    std::set<std::string_view> used;
    for (const auto& [reference, image] : images)
        used.insert(image.layers.begin(), image.layers.end());
    std::vector<std::string> unused;
    for (const auto& [hex, layer] : layers) {
        if (!used.contains(hex)) unused.push_back(hex);
    }
    return unused;
}

std::uint64_t Catalog::size_of(const ImageRecord& image) const {
    std::set<std::string_view> distinct(image.layers.begin(), image.layers.end());
    std::uint64_t size = 0;
    for (std::string_view hex : distinct)
        size += layers.find(hex)->second.size;
    return size;
}

std::vector<std::string> Catalog::effective_layers(const ImageRecord& image) const {
    std::vector<std::string> stack;
    for (auto hex = image.layers.rbegin(); hex != image.layers.rend(); ++hex) {
        const LayerRecord& layer = layers.find(*hex)->second;
        if (layer.entries > 0 && std::ranges::find(stack, *hex) == stack.end()) {
            stack.push_back(*hex);
        }
        if (layer.opaque) break;
    }
    return stack;
}

}  // namespace opensandbox::image
