#include "image/derivation.hpp"

#include "base/digest.hpp"
#include "base/remove_tree.hpp"
#include "image/layer_digest.hpp"
#include "image/manifest.hpp"
#include "json/document.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

namespace opensandbox::image {
namespace {

/// Bytes of all names and values. A sandbox gets its config in one message.
constexpr std::size_t kLargestConfig = std::size_t{128} << 10;

Error wrong(std::string_view member, std::string_view rule) {
    return {ErrorCode::invalid_argument, std::string(member) + ": " + std::string(rule)};
}

/// Looks at all text of one config and counts it.
class TextCheck {
  public:
    void add(std::string_view member, std::string_view text) {
        size_ += text.size() + 1;
        if (text.find('\0') != std::string_view::npos) keep(wrong(member, "must not contain NUL"));
        if (size_ > kLargestConfig) keep(wrong("config", "must not be larger than 128 KiB"));
    }
    void add(std::string_view member, const std::vector<std::string>& texts) {
        for (const std::string& text : texts)
            add(member, text);
    }
    void keep(Error error) {
        if (status_) status_ = std::move(error);
    }
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    std::size_t size_ = 0;
    Status status_;
};

/// "80" or "80/tcp", "80/udp", "80/sctp".
bool is_port(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view number = text.substr(0, slash);
    unsigned port = 0;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), port);
    if (error != std::errc() || end != number.data() + number.size()) return false;
    if (port < 1 || port > 65535) return false;
    if (slash == std::string_view::npos) return true;
    const std::string_view protocol = text.substr(slash + 1);
    return protocol == "tcp" || protocol == "udp" || protocol == "sctp";
}

/// The config as other engines write it (OCI image-spec, config.md), without times, so that the
/// same content has the same digest.
std::string config_document(const ImageRecord& image) {
    json::array env;
    for (const auto& [name, value] : image.config.env)
        env.emplace_back(name + "=" + value);
    json::object labels;
    for (const auto& [name, value] : image.config.labels)
        labels[name] = value;
    json::object ports;
    for (const std::string& port : image.config.exposed_ports)
        ports[port] = json::object();
    json::array diff_ids;
    for (const std::string& hex : image.layers)
        diff_ids.emplace_back("sha256:" + hex);
    json::object config{{"Env", std::move(env)},
                        {"User", image.config.user},
                        {"WorkingDir", image.config.working_directory},
                        {"Entrypoint", json::string_array(image.config.entrypoint)},
                        {"Cmd", json::string_array(image.config.cmd)},
                        {"Labels", std::move(labels)},
                        {"ExposedPorts", std::move(ports)}};
    json::object document{
        {"architecture", machine_architecture()},
        {"os", "linux"},
        {"config", std::move(config)},
        {"rootfs", json::object{{"type", "layers"}, {"diff_ids", std::move(diff_ids)}}}};
    return json::serialize(document);
}

}  // namespace

Status check_config_change(const ConfigChange& change) {
    TextCheck texts;
    if (change.env) {
        for (const auto& [name, value] : *change.env) {
            texts.add("env", name);
            texts.add("env", value);
            if (name.empty() || name.find('=') != std::string::npos) {
                texts.keep(wrong(
                    "env", "the name " + in_quotes(name) + " must not be empty or contain '='"));
            }
        }
    }
    if (change.user) texts.add("user", *change.user);
    if (change.working_directory) {
        texts.add("workingDir", *change.working_directory);
        if (!change.working_directory->empty() && !change.working_directory->starts_with('/')) {
            texts.keep(wrong("workingDir", "must be absolute"));
        }
    }
    if (change.entrypoint) texts.add("entrypoint", *change.entrypoint);
    if (change.cmd) texts.add("cmd", *change.cmd);
    if (change.labels) {
        for (const auto& [name, value] : *change.labels) {
            texts.add("labels", name);
            texts.add("labels", value);
            if (name.empty()) texts.keep(wrong("labels", "a name must not be empty"));
        }
    }
    if (change.exposed_ports) {
        texts.add("exposedPorts", *change.exposed_ports);
        for (const std::string& port : *change.exposed_ports) {
            if (is_port(port)) continue;
            texts.keep(wrong("exposedPorts", in_quotes(port) +
                                                 " must be a port of 1 to 65535, with /tcp, /udp "
                                                 "or /sctp or nothing"));
        }
    }
    return texts.status();
}

ImageConfig apply(const ConfigChange& change, ImageConfig config) {
    if (change.env) {
        for (const auto& [name, value] : *change.env) {
            auto found = std::ranges::find(config.env, name, [](const auto& v) { return v.first; });
            if (found == config.env.end()) {
                config.env.emplace_back(name, value);
            } else {
                found->second = value;
            }
        }
    }
    if (change.user) config.user = *change.user;
    if (change.working_directory) config.working_directory = *change.working_directory;
    if (change.entrypoint) config.entrypoint = *change.entrypoint;
    if (change.cmd) config.cmd = *change.cmd;
    if (change.labels) config.labels = *change.labels;
    if (change.exposed_ports) config.exposed_ports = *change.exposed_ports;
    return config;
}

Result<ImageRecord> derive_record(const ImageRecord& base, const std::vector<std::string>& layers,
                                  const ConfigChange& change) {
    ImageRecord image = base;
    image.layers.insert(image.layers.end(), layers.begin(), layers.end());
    if (image.layers.size() > kMostLayers) {
        return Error(ErrorCode::conflict,
                     "the image would have " + std::to_string(image.layers.size()) +
                         " layers; no more than " + std::to_string(kMostLayers) + " can be in one");
    }
    image.config = apply(change, base.config);
    const std::string document = config_document(image);
    if (document == config_document(base)) return base;
    image.digest = "sha256:" + sha256_hex(document);
    image.created_at = now();
    return image;
}

Result<const ImageRecord*> find_base(const Catalog& catalog, const std::string& base) {
    if (base.starts_with("sha256:")) {
        for (const auto& [reference, image] : catalog.images) {
            if (image.digest == base) return &image;
        }
        return Error(ErrorCode::not_found, "image " + in_quotes(base) + " is not in the store");
    }
    auto reference = parse_reference(base);
    if (!reference) return reference.error();
    if (reference->is_host()) {
        return Error(ErrorCode::conflict,
                     "image \"host\" is made of this machine's own files, not of layers: no image "
                     "can be made of it");
    }
    if (const ImageRecord* image = catalog.find(*reference)) return image;
    return Error(ErrorCode::not_found, "image \"" + reference->text() + "\" is not in the store");
}

Result<StagedLayers> stage_layers(const std::vector<LayerSource>& sources,
                                  const std::filesystem::path& directory,
                                  const std::stop_token& stop) {
    StagedLayers out;
    for (const LayerSource& write : sources) {
        const std::filesystem::path fresh = directory / "layer";
        if (stop.stop_requested()) {
            return Error(ErrorCode::cancelled, "making the image was broken off");
        }
        if (auto ok = write(fresh); !ok) return ok.error();
        auto layer = identify_layer(fresh, stop);
        if (!layer) return layer.error();
        const bool wanted = layer->record.entries > 0;
        if (wanted) out.order.push_back(layer->hex);
        if (wanted && out.records.emplace(layer->hex, layer->record).second) {
            const std::filesystem::path named = directory / layer->hex;
            if (::rename(fresh.c_str(), named.c_str()) == 0) continue;
            return Error::from_errno(errno, "rename " + fresh.string());
        }
        if (auto ok = remove_tree(fresh); !ok) return ok.error();
    }
    return out;
}

}  // namespace opensandbox::image
