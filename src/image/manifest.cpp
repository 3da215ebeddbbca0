#include "image/manifest.hpp"

#include "base/digest.hpp"
#include "image/budget.hpp"
#include "json/document.hpp"

#include <limits>
#include <optional>

namespace opensandbox::image {
namespace {

Error broken_member(std::string_view member, std::string_view rule) {
    return {ErrorCode::invalid_argument, std::string(member) + ": " + std::string(rule)};
}

Result<json::value> parse_document(std::string_view text) {
    if (text.size() > kLargestDocument) {
        return Error(ErrorCode::too_large, "a JSON document must not be larger than 4 MiB");
    }
    return json::parse(text);
}

Result<json::object> parse_object(std::string_view text) {
    auto document = parse_document(text);
    if (!document) return document.error();
    if (!document->is_object()) return broken_member("document", "must be an object");
    return std::move(document->get_object());
}

/// A member, empty when absent. Text with a NUL would be cut where the kernel takes it.
Result<std::string> text_of(const json::object& from, std::string_view name) {
    auto text = json::get_string(from, name);
    if (!text) return text.error();
    if (!*text) return std::string();
    if ((*text)->find('\0') != std::string::npos)
        return broken_member(name, "must not contain NUL");
    return std::move(**text);
}

Result<std::vector<std::string>> texts_of(const json::object& from, std::string_view name) {
    auto texts = json::get_strings(from, name);
    if (!texts) return texts.error();
    if (!*texts) return std::vector<std::string>();
    for (const std::string& text : **texts) {
        if (text.find('\0') != std::string::npos)
            return broken_member(name, "must not contain NUL");
    }
    return std::move(**texts);
}

Result<const json::object*> object_of(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    if (!member) return static_cast<const json::object*>(nullptr);
    if (!member->is_object()) return broken_member(name, "must be an object");
    return &member->get_object();
}

Status read_platform(const json::object& object, Descriptor& into) {
    auto platform = object_of(object, "platform");
    if (!platform) return platform.error();
    if (!*platform) return {};
    auto os = text_of(**platform, "os");
    auto architecture = text_of(**platform, "architecture");
    if (!os) return os.error();
    if (!architecture) return architecture.error();
    into.os = *os;
    into.architecture = *architecture;
    auto variant = text_of(**platform, "variant");
    if (!variant) return variant.error();
    into.variant = *variant;
    return {};
}

Status read_name(const json::object& object, Descriptor& into) {
    auto annotations = object_of(object, "annotations");
    if (!annotations) return annotations.error();
    if (!*annotations) return {};
    for (std::string_view key : {"io.containerd.image.name", "org.opencontainers.image.ref.name"}) {
        auto name = text_of(**annotations, key);
        if (!name) return name.error();
        if (into.name.empty()) into.name = *name;
    }
    return {};
}

Result<Descriptor> parse_descriptor(const json::value& value, const std::string& where) {
    if (!value.is_object()) return broken_member(where, "must be an object");
    const json::object& object = value.get_object();
    Descriptor descriptor;
    auto media_type = text_of(object, "mediaType");
    if (!media_type) return media_type.error().within(where);
    descriptor.media_type = *media_type;
    auto digest = text_of(object, "digest");
    if (!digest) return digest.error().within(where);
    descriptor.hex = digest_hex(*digest);
    if (descriptor.hex.empty()) {
        return broken_member(where + ".digest", "must be \"sha256:\" and 64 lower-case hex digits");
    }
    auto size = json::get_integer(object, "size");
    if (!size) return size.error().within(where);
    if (!*size || **size < 0) return broken_member(where + ".size", "must be a number of bytes");
    descriptor.size = static_cast<std::uint64_t>(**size);
    if (auto ok = read_platform(object, descriptor); !ok) return ok.error().within(where);
    if (auto ok = read_name(object, descriptor); !ok) return ok.error().within(where);
    return descriptor;
}

Result<std::vector<Descriptor>> parse_descriptors(const json::object& from, std::string_view name,
                                                  std::size_t most) {
    const json::value* member = json::find(from, name);
    if (!member) return broken_member(name, "is missing");
    if (!member->is_array()) return broken_member(name, "must be an array");
    const json::array& array = member->get_array();
    if (array.size() > most) {
        return broken_member(name, "must not hold more than " + std::to_string(most) + " entries");
    }
    std::vector<Descriptor> descriptors;
    for (std::size_t i = 0; i < array.size(); ++i) {
        auto descriptor =
            parse_descriptor(array[i], std::string(name) + "[" + std::to_string(i) + "]");
        if (!descriptor) return descriptor.error();
        descriptors.push_back(std::move(*descriptor));
    }
    return descriptors;
}

Result<std::vector<std::string>> parse_diff_ids(const json::object& document) {
    auto rootfs = object_of(document, "rootfs");
    if (!rootfs) return rootfs.error();
    if (!*rootfs) return broken_member("rootfs", "is missing");
    auto digests = texts_of(**rootfs, "diff_ids");
    if (!digests) return digests.error().within("rootfs");
    std::vector<std::string> ids;
    for (const std::string& digest : *digests) {
        ids.emplace_back(digest_hex(digest));
        if (ids.back().empty()) {
            return broken_member("rootfs.diff_ids",
                                 "must be \"sha256:\" and 64 lower-case hex digits");
        }
    }
    return ids;
}

Result<ImageConfig> parse_run_config(const json::object& document) {
    ImageConfig config;
    auto object = object_of(document, "config");
    if (!object) return object.error();
    if (!*object) return config;
    auto env = texts_of(**object, "Env");
    auto user = text_of(**object, "User");
    auto directory = text_of(**object, "WorkingDir");
    auto entrypoint = texts_of(**object, "Entrypoint");
    auto cmd = texts_of(**object, "Cmd");
    if (!env) return env.error().within("config");
    if (!user) return user.error().within("config");
    if (!directory) return directory.error().within("config");
    if (!entrypoint) return entrypoint.error().within("config");
    if (!cmd) return cmd.error().within("config");
    for (const std::string& variable : *env) {
        std::size_t equals = variable.find('=');
        if (equals == 0 || equals == std::string::npos) {
            return broken_member("config.Env",
                                 in_quotes(variable) + " must have the form NAME=VALUE");
        }
        config.env.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
    }
    config.user = std::move(*user);
    config.working_directory = std::move(*directory);
    config.entrypoint = std::move(*entrypoint);
    config.cmd = std::move(*cmd);
    auto labels = json::get_string_map(**object, "Labels");
    if (!labels) return labels.error().within("config");
    if (*labels) config.labels.insert((*labels)->begin(), (*labels)->end());
    auto ports = object_of(**object, "ExposedPorts");
    if (!ports) return ports.error().within("config");
    if (*ports) {
        for (const auto& [port, nothing] : **ports)
            config.exposed_ports.emplace_back(port);
    }
    return config;
}

}  // namespace

Result<std::vector<Descriptor>> parse_index(std::string_view text) {
    auto document = parse_object(text);
    if (!document) return document.error();
    return parse_descriptors(*document, "manifests", 4096);
}

bool looks_like_index(std::string_view text) {
    auto document = parse_object(text);
    return document && json::find(*document, "manifests") && !json::find(*document, "config");
}

Result<ImageManifest> parse_manifest(std::string_view text) {
    auto document = parse_object(text);
    if (!document) return document.error();
    const json::value* config = json::find(*document, "config");
    if (!config) return broken_member("config", "is missing");
    auto descriptor = parse_descriptor(*config, "config");
    if (!descriptor) return descriptor.error();
    auto layers = parse_descriptors(*document, "layers", kMostLayers);
    if (!layers) return layers.error();
    for (const Descriptor& layer : *layers) {
        if (!is_layer(layer)) {
            return Error(
                ErrorCode::unsupported,
                "layers: media type " + in_quotes(layer.media_type) + " is not a tar layer");
        }
    }
    ImageManifest manifest;
    manifest.config = std::move(*descriptor);
    manifest.layers = std::move(*layers);
    return manifest;
}

Result<ConfigDocument> parse_config(std::string_view text) {
    auto document = parse_object(text);
    if (!document) return document.error();
    ConfigDocument parsed;
    auto os = text_of(*document, "os");
    auto architecture = text_of(*document, "architecture");
    auto diff_ids = parse_diff_ids(*document);
    auto config = parse_run_config(*document);
    if (!os) return os.error();
    if (!architecture) return architecture.error();
    if (!diff_ids) return diff_ids.error();
    if (!config) return config.error();
    parsed.os = std::move(*os);
    parsed.architecture = std::move(*architecture);
    parsed.diff_ids = std::move(*diff_ids);
    parsed.config = std::move(*config);
    return parsed;
}

Result<std::vector<DockerManifest>> parse_docker_manifest(std::string_view text) {
    auto document = parse_document(text);
    if (!document) return document.error();
    if (!document->is_array()) return broken_member("manifest.json", "must be an array");
    std::vector<DockerManifest> manifests;
    for (const json::value& value : document->get_array()) {
        if (!value.is_object()) return broken_member("manifest.json", "must hold objects");
        auto config = text_of(value.get_object(), "Config");
        auto tags = texts_of(value.get_object(), "RepoTags");
        auto layers = texts_of(value.get_object(), "Layers");
        if (!config) return config.error();
        if (!tags) return tags.error();
        if (!layers) return layers.error();
        if (config->empty()) return broken_member("Config", "is missing");
        if (layers->size() > kMostLayers) {
            return broken_member("Layers", "must not hold more than 256 entries");
        }
        DockerManifest manifest;
        manifest.config = std::move(*config);
        manifest.tags = std::move(*tags);
        manifest.layers = std::move(*layers);
        manifests.push_back(std::move(manifest));
    }
    return manifests;
}

}  // namespace opensandbox::image
